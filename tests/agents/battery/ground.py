"""Where the battery is fought: a small repository of one user, a holder, and a real CLI beside it.

The holder is an agent whose hooks report in and which is idle. Between two entries all is put back
from outside, so one CLI process can be given the whole list in one conversation.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

import coordinator._hook as hook_file
from coordinator.client.connection import Wire
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.agents.battery.shape import FIRST, NOW, TOPIC
from tests.agents.clis import Extra, cache_folder
from tests.agents.conversation import Writer
from tests.agents.model_server import ModelServer
from tests.agents.stand import Ran
from tests.agents.stand import Stand as Stage
from tests.agents.wired import PROFILES, TRUST
from tests.namespaces.conftest import Stand
from tests.waiting import until

HOLDER = "the-holder"
#: The same commits on both sides of a comparison.
DATES = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-11-22T12:00:00Z")
WHO = {"GIT_AUTHOR_NAME": "Agent", "GIT_AUTHOR_EMAIL": "agent@localhost",
       "GIT_COMMITTER_NAME": "Agent", "GIT_COMMITTER_EMAIL": "agent@localhost"}


@functools.cache
def readable(agent: str) -> Path:
    """A folder from which every user can run this CLI: links to the installed files where they can
    be made, else a copy. It goes when the test process ends."""
    source = cache_folder() / agent
    for near, how in (("/var/tmp", "-al"), (None, "-a")):
        folder = Path(tempfile.mkdtemp(prefix="coord-test-agents-", dir=near))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        if subprocess.run(["cp", how, str(source), str(folder / agent)], capture_output=True, check=False).returncode == 0:
            break
    return folder


R = TypeVar("R")


#: Else it refuses what is outside of the repository by itself, and ends.
MAY = {"opencode": {"OPENCODE_PERMISSION": json.dumps({"bash": "allow", "edit": "allow", "external_directory": "allow"})}}


class Door:
    """One connection to the coordinator of any user, whom a client of another would not trust."""

    def __init__(self, state: StateDir) -> None:
        link = socket.socket(socket.AF_UNIX)
        link.connect(str(state.socket()))
        self._wire = Wire(state, autostart=False)
        self._wire.take(link)

    def call(self, asked: rq.Request[R]) -> R:
        return msgspec.json.decode(self._wire.ask(asked.op, msgspec.json.encode(asked)), type=asked.reply_shape())


class Ground(Stand):
    """The repository of one user, and a CLI in it: by itself, or in a session of coord's."""

    def __init__(self, folder: Path, uid: int, agent: str, server: ModelServer, *, guarded: bool) -> None:
        super().__init__(folder, uid)
        self.agent_name, self.guarded, self.folder = agent, guarded, folder
        self.stage = Stage(folder / "runs", server)
        self._hooked, self._played = "", 0
        self.client: Door  # from when the holder is there
        self.env |= {**DATES, **WHO}
        self._first_commits()
        # The bare one has coord's own files, too: what is in the folder is no difference.
        self.coord("init", *(["--agent", PROFILES[agent], "--yes"] if guarded else []), "--no-shims")
        self.stays = set(os.listdir(self.root)) - set(_tops(NOW))
        self._git = _files(self.root / ".git")
        self.fresh()
        if guarded:
            self.holder()

    def _first_commits(self) -> None:
        shutil.rmtree(self.root / ".git")
        self.run("git", "init", "-q", "-b", "main", "--template=", ".")
        (self.root / ".git/hooks").mkdir()
        os.chown(self.root / ".git/hooks", self.uid, self.uid)
        for files, words in ((FIRST, ("commit", "-qm", "Start")), ({"free.txt": "free line 1\n"}, ("commit", "-qm", "Shorten")),
                             ({"free.txt": FIRST["free.txt"]}, ("commit", "-qm", "Lengthen"))):
            self._put(files)
            self.run("git", "add", "-A")
            assert self.run("git", *words).returncode == 0
        self.run("git", "switch", "-qc", "topic")
        self._put(TOPIC)
        self.run("git", "commit", "-qam", "Topic")
        assert self.run("git", "switch", "-q", "main").returncode == 0
        self._put({"f.txt": NOW["f.txt"]})

    def _put(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            file = self.root / name
            for parent in reversed(file.relative_to(self.root).parents):
                if not (self.root / parent).is_dir() or (self.root / parent).is_symlink():
                    _away(self.root / parent)
                    (self.root / parent).mkdir()
                found = (self.root / parent).stat()
                if (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) != (self.uid, self.uid, 0o755):
                    os.chown(self.root / parent, self.uid, self.uid)
                    (self.root / parent).chmod(0o755)
            if not file.is_symlink() and file.is_file() and file.stat().st_nlink == 1 and _is(file, text, self.uid):
                continue  # what is held is left alone
            if file.is_symlink() or file.is_dir() or (file.exists() and file.stat().st_nlink > 1):
                _away(file)
            file.write_text(text)
            file.chmod(0o644)
            os.chown(file, self.uid, self.uid)

    def fresh(self) -> None:
        """All as it was when the first entry began, by the holder's hand."""
        for name in os.listdir(self.root):
            if name not in self.stays and name not in _tops(NOW):
                _away(self.root / name)
        for name in _files(self.root, within=sorted(_tops(NOW))).keys() - NOW.keys():
            _away(self.root / name)
        self._put(NOW)
        git = self.root / ".git"
        now = _files(git)
        for name in now.keys() - self._git.keys():
            (git / name).unlink()
        (git / "logs/refs/stash").unlink(missing_ok=True)  # git's list of stashes
        for name, content in self._git.items():
            if now.get(name) != content:
                (git / name).parent.mkdir(parents=True, exist_ok=True)
                (git / name).write_bytes(content)
                os.chown(git / name, self.uid, self.uid)

    def person(self, command: str) -> None:
        """What somebody outside of all sessions does."""
        subprocess.run([*self.become, "bash", "-c", command], cwd=self.root, env={**self.env, "PATH": "/usr/local/bin:/usr/bin:/bin"},
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=20)

    # The holder ------------------------------------------------------------------------------------

    def holder(self) -> str:
        """Its name; its session begins when it is first asked for."""
        if not self._hooked:
            self.coord("up")
            call = {"session_id": HOLDER, "cwd": str(self.root), "hook_event_name": "SessionStart", "source": "startup",
                    "permission_mode": "default"}
            subprocess.run([*self.become, self.python, "-I", "-S", "-E", hook_file.__file__, str(self.state.socket()), "claude-code"],
                           cwd=self.root, env=self.env, input=json.dumps(call), text=True, check=True, capture_output=True, timeout=30)
            self.client = Door(self.state)
            (self._hooked,) = [one.agent for one in self.client.call(rq.Agents()).items if one.hooked_at]
        return self._hooked

    def hold(self, *resources: str) -> None:
        """For the holder. Who was refused before may have stood in line, and have it by now."""
        if self.guarded:
            until(lambda: self._has(list(resources)))

    def _has(self, resources: list[str]) -> bool:
        try:
            self.client.call(rq.Acquire(agent=self.holder(), resources=resources, description="rewriting it", retry=False))
        except Refusal:
            self.nobody_holds()
            return False
        return True

    def nobody_holds(self) -> None:
        """Also what the CLI's own session was given meanwhile."""
        for one in self.client.call(rq.Locks()).items if self.guarded else ():
            with contextlib.suppress(Refusal):  # it has ended by itself
                self.client.call(rq.Release(agent=one.locked_by, resources=[one.resource], force=one.locked_by != self._hooked))

    def reviews(self) -> list[rq.Review]:
        """What waits for a verdict, and with it each file's names of contents."""
        return self.client.call(rq.Reviews()).items if self.guarded else []

    def told(self) -> list[str]:
        """What the holder was told since it was last asked."""
        if not self.guarded:
            return []
        notices = self.client.call(rq.Heartbeat(agent=self.holder())).notices
        if notices:
            self.client.call(rq.Heartbeat(agent=self.holder(), ack=max(one.notice for one in notices)))
        return [one.text for one in notices]

    def no_reviews(self) -> None:
        for one in self.reviews():
            self.client.call(rq.ReviewDecide(review=one.review, verdict="keep"))

    # The CLI ---------------------------------------------------------------------------------------

    def plays(self, script: Writer, seconds: float = 900.0) -> Ran:
        """The whole conversation of one CLI process."""
        self._played += 1
        home = {"XDG_STATE_HOME": str(self.home)} | {name: self.env[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
                                                     if name in self.env}
        own = TRUST.get(self.agent_name, lambda _: Extra())(self.root)
        extra = Extra(argv=own.argv, env={**own.env, **home, **DATES, **MAY.get(self.agent_name, {})}, home_files=own.home_files)

        def before(argv: list[str]) -> list[str]:
            for made in (self.folder / "runs").rglob("*"):
                os.chown(made, self.uid, self.uid, follow_symlinks=False)
            for made in (self.folder / "runs", *(self.folder / "runs").iterdir()):
                made.chmod(0o755)
            if not self.guarded:
                return [*self.become, *argv]
            return [*self.become, self.python, "-P", "-m", "coordinator.cli.main", "run", "--program", argv[0],
                    PROFILES[self.agent_name], "--", *argv[1:]]

        return self.stage.run(self.agent_name, self.root, script, extra=extra, before=before, seconds=seconds,
                              name=f"{self.folder.name}-{self._played}")

    def close(self) -> None:
        self.stage.close()
        super().close()


def _tops(files: dict[str, str]) -> set[str]:
    return {name.split("/")[0] for name in files}


def _is(file: Path, text: str, uid: int) -> bool:
    found = file.stat()
    return (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o644, uid, uid) and file.read_bytes() == text.encode()


def _away(path: Path) -> None:
    if path.is_symlink() or path.is_file() or (path.exists() and not path.is_dir()):
        path.unlink()
    elif path.is_dir():
        path.chmod(stat.S_IRWXU)
        shutil.rmtree(path)


def _files(folder: Path, within: list[str] | None = None) -> dict[str, bytes]:
    """The contents of all files below a folder, or of those of its entries; git's objects are left out."""
    found: dict[str, bytes] = {}
    for top in within if within is not None else [""]:
        if (top and not (folder / top).is_dir()) or (folder / top).is_symlink():
            continue
        for where, folders, names in os.walk(folder / top):
            if Path(where).name == ".git" or where == str(folder):
                folders[:] = [name for name in folders if name not in ("objects", "logs")]
            for name in (*names, *(name for name in folders if (Path(where) / name).is_symlink())):
                file = Path(where) / name
                plain = file.is_file() and not file.is_symlink()
                found[str(file.relative_to(folder))] = file.read_bytes() if plain else b""
    return found
