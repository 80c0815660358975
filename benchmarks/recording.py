"""Record two agents that want one file, as an animated picture: `make recording`.

A real coordinator in a temporary repository; each line below a `$` is what that command printed in
this run. Only the pauses for reading are made up. Owns the scene and how it is drawn; it decides
nothing about what coord says.

The picture is SVG with CSS: no script, no font and nothing from elsewhere. It begins with its end,
so that its first frame tells the story: on paper, in a preview, and where animations are off.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from xml.sax.saxutils import escape

import typer

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "two-agents.svg"
COLUMNS = 100
#: Signs and lines in pixels; each text is stretched to this, whatever font there is.
SIGN, LINE, MARGIN, BAR, GAP = 7.8, 18, 16, 28, 12
FADE_S = 0.15
#: So long the whole story is seen before it is played (s).
WHOLE_S = 3.0
PANES = {"ann": "an agent: ann", "bob": "another agent: bob", "you": "you"}
#: Lines that a pane shows at once; it rolls on as a terminal does.
LINES = {"ann": 9, "bob": 11, "you": 9}
FILES = {
    "shop/limits.py": '"""What one order may cost."""\n\nLIMIT = 1000\n',
    "docs/api.md": "# API\n",
    "context_archive/architecture.md": (
        "# The shop\n\n## 2. Limits\n\n`shop/limits.py` alone says what an order may cost. Its "
        "callers round the total before.\n"),
}
EDIT = "sed -i 's/1000/5000/' shop/limits.py"


@dataclass
class Row:
    """A line of a pane, and when it is first seen (s)."""

    at: float
    text: str
    typed: bool = False


@dataclass
class Scene:
    """A repository in which commands are typed, and what was seen of that."""

    root: Path
    seen: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in PANES})

    def type(self, pane: str, at: float, command: str, answer_after: float = 0.6) -> None:
        """Run a command, and show what it prints."""
        self.shown(pane, at, at + answer_after, command, self.start(command))

    def start(self, command: str) -> subprocess.Popen[str]:
        """Begin a command, as somebody types it in this repository."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
        return subprocess.Popen(
            command, shell=True, cwd=self.root, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**kept, "PATH": path, "COLUMNS": str(COLUMNS)})

    def shown(self, pane: str, at: float, answered: float, command: str,
              process: subprocess.Popen[str]) -> None:
        """Show a command that was begun, and what it has printed at its end."""
        out, _ = process.communicate(timeout=60)
        rows = self.seen[pane]
        if rows:
            rows.append(Row(at, ""))
        rows.append(Row(at, command, typed=True))
        for line in out.rstrip().replace(str(self.root), "~/shop").splitlines():
            # As a terminal does with a long line, but that it ends between words.
            rows += [Row(answered, part) for part in textwrap.wrap(
                line, COLUMNS, break_on_hyphens=False, drop_whitespace=False) or [""]]


def play(root: Path) -> Scene:
    """Two agents meet at one file."""
    scene = Scene(root)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    who = "-c user.name=maria -c user.email=maria@example.org"
    for command in (
        "git init -q", "git add -A", f"git {who} commit -qm begin", "coord up",
        "coord task add 'Raise the limit for companies' --resource shop/limits.py",
        "coord task add 'Describe the limits' --resource docs/api.md",
    ):
        done = scene.start(command)
        said, _ = done.communicate(timeout=60)
        if done.returncode:
            raise SystemExit(f"{command}: {said}")
    try:
        scene.type("ann", 0.5, "coord task claim --agent ann")
        scene.type("bob", 4.0, "coord lock shop/limits.py --agent bob -m 'round the total'")
        scene.type("bob", 11.0, "coord task claim T-2 --agent bob")
        scene.type("bob", 14.0, "echo 'An order costs at most 5000.' >> docs/api.md")
        scene.type("bob", 15.0, "coord task done T-2 --agent bob --result 'in the API guide'")
        waits = "coord lock shop/limits.py --agent bob --wait 10m"
        waiting = scene.start(waits)
        while "bob" not in str(scene.start("coord locks --waiting").communicate(timeout=60)[0]):
            if waiting.poll() is not None:
                raise SystemExit(f"{waits}: it did not wait")
        scene.type("you", 18.5, "coord locks --waiting")
        scene.type("ann", 22.0, EDIT)
        ends = "coord task done T-1 --agent ann --result '5000 for companies'"
        scene.type("ann", 23.5, ends)
        scene.shown("bob", 17.0, 24.4, waits, waiting)
        scene.type("you", 27.0, "coord explain shop/limits.py")
    finally:
        subprocess.run(["coord", "down"], cwd=root, check=False, capture_output=True, env={
            **os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    return scene


def drawn(scene: Scene, lasts: float = 36.0) -> str:
    """The picture."""
    width = COLUMNS * SIGN + 2 * MARGIN
    times = sorted({row.at for rows in scene.seen.values() for row in rows})
    rules = "".join(
        f"@keyframes t{n}{{0%,{_percent(-FADE_S, lasts)}{{opacity:1}}"
        f"{_percent(0, lasts)},{_percent(at, lasts)}{{opacity:0}}"
        f"{_percent(at + FADE_S, lasts)},100%{{opacity:1}}}}"
        f".t{n}{{animation:t{n} {lasts + WHOLE_S:g}s infinite}}"
        for n, at in enumerate(times))
    panes, top = [], 0.0
    for name, rows in scene.seen.items():
        height = BAR + MARGIN / 2 + LINES[name] * LINE
        lines = "".join(
            f'<g class="t{times.index(row.at)}">{_line(row, number * LINE + 13)}</g>'
            for number, row in enumerate(rows) if row.text.strip())
        rules += _rolling(name, rows, lasts)
        panes.append(
            f'<rect class="pane" x=".5" y="{top + .5:g}" width="{width - 1:g}" '
            f'height="{height:g}" rx="8"/>'
            f'<text class="bar" x="{MARGIN}" y="{top + 19:g}">{escape(PANES[name])}</text>'
            f'<svg y="{top + BAR:g}" width="{width:g}" height="{LINES[name] * LINE}">'
            f'<g class="r-{name}">{lines}</g></svg>')
        top += height + GAP
    note = "A real run of coord. Only the pauses for reading were added (make recording)."
    panes.append(f'<text class="note" x="{MARGIN}" y="{top + 4:g}">{note}</text>')
    story = "\n".join(f"{name}: $ {row.text}" if row.typed else row.text
                      for name, rows in scene.seen.items() for row in rows if row.text.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {top + 14:g}" '
        f'width="{width:g}" height="{top + 14:g}" role="img" xml:space="preserve">'
        "<title>Two agents want one file</title>"
        f"<desc>{escape(story)}</desc>"
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
        "monospace;fill:#d6deeb;white-space:pre}.pane{fill:#101722;stroke:#3b4a60}"
        ".bar{fill:#8fa3bf;font-size:12px}.typed{fill:#9fe6a0}.sign{fill:#7aa2f7}"
        ".no{fill:#ffb86b}.note{fill:#7d8795;font-size:11px}"
        f"{rules}@media print,(prefers-reduced-motion:reduce){{g{{animation:none!important}}}}"
        "</style>"
        + "".join(panes) + "</svg>\n")


def _rolling(name: str, rows: list[Row], lasts: float) -> str:
    """How far a pane has rolled up at each time; without animations, as at the end."""
    last = max(0, len(rows) - LINES[name]) * LINE
    steps, up = (f"0%,{_percent(-FADE_S, lasts)}{{transform:translateY(-{last}px)}}"
                 f"{_percent(0, lasts)}{{transform:translateY(0)}}"), 0
    for at in sorted({row.at for row in rows}):
        due = max(0, sum(row.at <= at for row in rows) - LINES[name]) * LINE
        if due != up:
            steps += (f"{_percent(at - 0.01, lasts)}{{transform:translateY(-{up}px)}}"
                      f"{_percent(at + FADE_S, lasts)}{{transform:translateY(-{due}px)}}")
            up = due
    return (f"@keyframes r-{name}{{{steps}100%{{transform:translateY(-{up}px)}}}}"
            f".r-{name}{{transform:translateY(-{up}px);"
            f"animation:r-{name} {lasts + WHOLE_S:g}s infinite}}")


def _line(row: Row, y: float) -> str:
    if not row.typed:
        kind = ' class="no"' if row.text.startswith("coord: ") else ""
        return _text(row.text, MARGIN, y, kind)
    return (_text("$", MARGIN, y, ' class="sign"')
            + _text(row.text, MARGIN + 2 * SIGN, y, ' class="typed"'))


def _text(text: str, x: float, y: float, kind: str) -> str:
    indent = len(text) - len(text.lstrip())
    bare = text.strip()
    return (f'<text{kind} x="{x + indent * SIGN:g}" y="{y:g}" '
            f'textLength="{len(bare) * SIGN:g}">{escape(bare)}</text>')


def _percent(at: float, lasts: float) -> str:
    return f"{100 * (at + WHOLE_S) / (lasts + WHOLE_S):.2f}%"


def record_agents(
    to: Annotated[Path, typer.Option(help="Where the picture goes.")] = PICTURE,
) -> None:
    """Record two agents that want one file: the animated picture in the README."""
    with tempfile.TemporaryDirectory(prefix="coord-recording-") as folder:
        root = Path(folder).resolve() / "shop"
        root.mkdir()
        text = drawn(play(root))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, "utf-8")
    print(f"{shlex.quote(str(to))}: {len(text.encode()):,} bytes")
