"""The three kinds of repository in which the day is spent, each with its tools from their registries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.namespaces.conftest import Stand

NICKS = ("ann", "bob", "cyd", "dan")
KINDS = ("pre-commit", "husky", "monorepo")
#: Formats what it is given. It fails where it changed something, if that is how its manager wants it.
FORMATTER = """import pathlib, re, sys
fails, names = sys.argv[1:2] == ["--fail"], [name for name in sys.argv[1:] if name[:2] != "--"]
changed = False
for name in names:
    file = pathlib.Path(name)
    text = file.read_text()
    new = re.sub("(?<=\\\\S)  +", " ", text)
    if new != text:
        file.write_text(new)
        changed = True
sys.exit(fails and changed)
"""

#: Leaves of a patch the hunks that add a line of this name, and no others.
HUNK = """import re, sys
head, *hunks = re.split("(?m)^(?=@@ )", sys.stdin.read())
sys.stdout.write(head + "".join(hunk for hunk in hunks if sys.argv[1] in hunk))
"""


@dataclass
class Repository:
    """One kind, made at a stand."""

    kind: str
    stand: Stand

    def git(self, *words: str, place: Path | None = None) -> str:
        """What git prints for a person, outside of all sessions.

        Raises:
            RuntimeError: git failed.
        """
        done = subprocess.run(["git", *words], cwd=place or self.stand.root, env=self.stand.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"git {' '.join(words)}: {done.stderr}")
        return done.stdout

    def places(self) -> list[Path]:
        """Its repositories, the outermost first."""
        root = self.stand.root
        return [root, root / "libs/sub", root / "fixtures/nested"] if self.kind == "monorepo" else [root]

    def by_hand(self, name: str) -> list[str]:
        """The manager, as one types it."""
        return {"pre-commit": [f"pre-commit run --files {name}", "pre-commit run"],
                "husky": ["npx --no-install lint-staged"], "monorepo": []}[self.kind]

    def in_a_new_tree(self, tree: Path) -> list[str]:
        """What one does first in a linked worktree."""
        return [f"ln -s {os.path.relpath(self.stand.root / 'node_modules', tree)} node_modules"] if self.kind == "husky" else []

    def build(self) -> None:
        """Write it, commit it, wire it, and have its manager installed."""
        stand = self.stand
        for words in (("user.name", "person"), ("user.email", "person@localhost"), ("gc.auto", "0")):
            self.git("config", *words)
        stand.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{stand.env['PATH']}"
        stand.env["PRE_COMMIT_HOME"] = str(stand.home / "cache")
        stand.write(".gitignore", ".claude/\n.mcp.json\nnode_modules\n.coord/\nfixtures/nested/\n__pycache__/\n")
        stand.write("tools/format.py", FORMATTER)
        stand.write("tools/hunk.py", HUNK)
        for nick in NICKS:
            for n in (1, 2, 3):
                stand.write(f"own/{nick}{n}.py", f"# {nick}\n# end\n")
            stand.write(f"landed/{nick}.txt", "# end\n")
        stand.write("shared/notes.txt", "# end\n")
        stand.write("shared/regions.py", "\n\n".join(f'def {nick}():\n    return "{nick}"\n' for nick in NICKS))
        getattr(self, f"_build_{self.kind.replace('-', '_')}")()
        stand.coord("init", "--agent", "claude-code", "--yes")
        self.git("add", "-A")
        self.git("commit", "-qm", "start", "--no-verify")

    def _build_pre_commit(self) -> None:
        self.stand.write(".pre-commit-config.yaml", "repos:\n  - repo: local\n    hooks:\n      - {id: format, name: format, language: system, "
                         "entry: python3 tools/format.py --fail, files: '[.]py$'}\n")
        self._must(sys.executable, "-m", "pre_commit", "install")

    def _build_husky(self) -> None:
        from tests.git_guard.test_hook_managers import npm_packages

        (self.stand.root / "node_modules").symlink_to(npm_packages())
        self.stand.write("package.json", json.dumps({"name": "day", "lint-staged": {"*.py": "python3 tools/format.py"}}))
        self._must("node_modules/.bin/husky")
        self.stand.write(".husky/pre-commit", "npx --no-install lint-staged\n")

    def _build_monorepo(self) -> None:
        origin, nested = self.stand.home / "sub", self.stand.root / "fixtures/nested"
        for place in (origin, nested):
            self._must("git", "init", "-q", str(place))
            for nick in NICKS:
                (place / f"{nick}.txt").write_text("# end\n")
            for words in (("config", "user.name", "person"), ("config", "user.email", "person@localhost"), ("add", "-A"), ("commit", "-qm", "start")):
                self.git(*words, place=place)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "libs/sub")
        for words in (("user.name", "person"), ("user.email", "person@localhost")):
            self.git("config", *words, place=self.stand.root / "libs/sub")

    def _must(self, *words: str) -> None:
        done = self.stand.run(*words)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
