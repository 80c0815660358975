"""Make the pictures of the browser page that the README shows: `make pictures`.

A real coordinator in a temporary repository, real leases, a real Chromium (CHROMIUM=path). The
agents are this script: it asks for what agents ask for. Three pictures, and a recording from the
first look to the first verdict.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = {"width": 1100, "height": 640}
COLOURS = 96
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FILES = {
    "shop/pay.py": '''def charge(order):
    """Take the money for an order."""
    total = sum(item.price for item in order.items)
    if total > LIMIT:
        raise TooExpensive(order)
    return bank.charge(order.customer, total)


def refund(order):
    """Give it back."""
    return bank.refund(order.customer, order.paid)
''',
    "shop/limits.py": "LIMIT = 1000\n",
    "shop/tax.py": """RATE = 19


def tax(total):
    return total * RATE / 100
""",
    "docs/api.md": "# API\n",
    "context_archive/architecture.md": "# The shop\n\n## 2. Money\n\n"
    "Totals are rounded half up, in `shop/pay.py` and nowhere else.\n",
}
HALF_DONE = (
    FILES["shop/pay.py"]
    .replace(
        "    total = sum(item.price for item in order.items)\n",
        "    total = round(sum(item.price for item in order.items), 2)\n",
    )
    .replace(
        "    return bank.refund(order.customer, order.paid)\n",
        "    amount = round(order.paid, 2)\n    # TODO: part refunds\n"
        "    return bank.refund(order.customer, amount)\n",
    )
)
TASKS = (
    ("Round the totals", ["shop/pay.py"]),
    ("Raise the limit for companies", ["shop/limits.py"]),
    ("Describe the limits", ["docs/api.md"]),
    ("Test the refunds", ["tests/test_pay.py"]),
    ("Tax of other countries", ["shop/tax.py"]),
)


class Shop:
    """A repository with a coordinator in which agents are at work."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, text in FILES.items():
            self.write(name, text)
        for command in (
            "git init -q",
            "git add -A",
            "git -c user.name=m -c user.email=m@x commit -qm begin",
        ):
            subprocess.run(command.split(), cwd=root, check=True)
        self.coord("up")
        self._people = Client(root)
        for title, resources in TASKS:
            self._people.call(
                rq.TaskAdd(
                    title=title,
                    resources=resources,
                    prompt=f"{title}, and say what you did in the changelog.",
                )
            )
        self._agents: list[Client] = []

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def coord(self, *arguments: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("COORD_")}
        return subprocess.run(
            [sys.executable, "-P", "-m", "coordinator.cli.main", *arguments],
            cwd=self.root,
            env=clean,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def agent(self, name: str, doing: str) -> Client:
        token = self._people.call(rq.Register(agent=name, description=doing)).token
        client = Client(self.root, agent=name, token=token)
        self._agents.append(client)
        return client

    def wait_for(self, name: str, resource: str) -> None:
        """An agent stands in the queue for a resource."""

        def ask() -> None:
            with Client(self.root, agent=name) as client, contextlib.suppress(Refusal):
                client.call(rq.Acquire(agent=name, resources=[resource], wait_s=60))

        threading.Thread(target=ask, daemon=True).start()
        deadline = time.monotonic() + 20
        while not any(waiter.agent == name for waiter in self._people.call(rq.Locks()).waiters):
            if time.monotonic() > deadline:
                raise SystemExit(f"{name} did not get into the queue for {resource}")
            time.sleep(0.05)

    def work(self) -> None:
        """Five agents: one was stopped half way, two wait, one asks."""
        left = self.agent("opencode-1", "round the totals")
        left.call(rq.TaskClaim(agent="opencode-1", task="T-1"))
        self.write("shop/pay.py", HALF_DONE)
        left.call(
            rq.Leave(
                agent="opencode-1",
                clean=False,
                reason="it was stopped",
                log_tail="charge() rounds now. Next: part refunds, then the tests.",
            )
        )
        claude = self.agent("claude-1", "raise the limit for companies")
        claude.call(rq.TaskClaim(agent="claude-1", task="T-2"))
        self.write("shop/limits.py", "LIMIT = 1000\nCOMPANY_LIMIT = 5000\n")
        codex = self.agent("codex-1", "describe the limits")
        codex.call(rq.TaskClaim(agent="codex-1", task="T-3"))
        gemini = self.agent("gemini-1", "test the refunds")
        gemini.call(rq.TaskClaim(agent="gemini-1", task="T-4"))
        aider = self.agent("aider-1", "tax of other countries")
        aider.call(rq.TaskClaim(agent="aider-1", task="T-5"))
        self.wait_for("codex-1", "shop/limits.py")
        self.wait_for("gemini-1", "docs/api.md")
        aider.call(
            rq.RequestFile(
                agent="aider-1", resource="shop/limits.py", reason="the limit has to be before tax"
            )
        )
        claude.call(
            rq.MessageSend(
                agent="claude-1", to="human", text="Do companies abroad have the same limit?"
            )
        )

    def close(self) -> None:
        for client in (*self._agents, self._people):
            client.close()
        self.coord("down")


def take_pictures(shop: Shop, browser: Any) -> dict[str, bytes]:
    """Name -> picture; those of the recording are called 1, 2, …"""
    page = browser.new_page(
        viewport=SIZE, color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )
    page.goto(shop.coord("web", "--no-open").strip())
    page.get_by_text("Do companies abroad").wait_for()
    # As the terminal's recording does: where the temporary folder lies tells nobody anything.
    page.locator(".root").evaluate("root => root.textContent = '~/shop'")
    taken = {"1": page.screenshot()}
    page.get_by_role("button", name="Agents and leases").click()
    page.get_by_role("img", name="Who waits for whom").wait_for()
    taken["2"] = page.screenshot()
    page.get_by_role("button", name="claude-1", exact=True).click()
    page.get_by_role("tab", name="Changes").click()
    page.get_by_text("COMPANY_LIMIT").wait_for()
    taken["page-agents"] = taken["3"] = page.screenshot()
    page.get_by_role("button", name="Needs you").click()
    taken["page-needs-you"] = page.screenshot()
    page.get_by_role("button", name="Look at it").click()
    page.locator(".diff .cm-mergeView").wait_for()
    taken["page-review"] = taken["4"] = page.screenshot()
    page.get_by_role("button", name="Change by change").click()
    page.get_by_role("button", name="Revert change 2").wait_for()
    taken["5"] = page.screenshot()
    page.get_by_role("button", name="Keep change 1").click()
    page.get_by_text("The rest stays open").wait_for()
    page.get_by_text("Change 1 of 1").wait_for()
    taken["6"] = page.screenshot()
    page.close()
    return taken


def main() -> int:
    """Write `docs/images/page-*.png` and `page.gif`; 1: there is no browser."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    program = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    if program is None:
        print("no Chromium here: CHROMIUM=path names one", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="coord-pictures-") as folder,
        sync_playwright() as driver,
    ):
        root = Path(folder).resolve() / "shop"
        root.mkdir()
        shop = Shop(root)
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        try:
            shop.work()
            taken = take_pictures(shop, browser)
        finally:
            browser.close()
            shop.close()
    pictures = {
        name: Image.open(io.BytesIO(data))
        .convert("RGB")
        .quantize(COLOURS, dither=Image.Dither.NONE)
        for name, data in taken.items()
    }
    for name in ("page-needs-you", "page-agents", "page-review"):
        pictures[name].save(IMAGES / f"{name}.png", optimize=True)
    frames = [pictures[name] for name in sorted(pictures) if name.isdecimal()]
    frames[0].save(
        IMAGES / "page.gif",
        save_all=True,
        append_images=frames[1:],
        duration=[3500, 2500, 3500, 3500, 3000, 3500],
        loop=0,
    )
    for path in sorted(IMAGES.glob("page*")):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
