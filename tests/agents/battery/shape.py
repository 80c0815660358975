"""What an entry of the battery is, and the small repository that each is tried in."""

from __future__ import annotations

from dataclasses import dataclass

from tests.agents.conversation import Create, Edit, Use


@dataclass(frozen=True)
class Attack:
    """One try to change what another holds.

    Attributes:
        name: a short sentence; results are kept under it.
        do: a command, or a call of an edit tool.
        held: the resource that another holds by then.
        person: what somebody outside of all sessions did before, as a shell command.
        before: what the same agent did before the lease was taken.
        waits: something in the background does it; it makes the file `over` when it is through.
        git: what is attacked is git's own state: HEAD, branches, the index.
        needs: programs; `root` where only root can do it without coord, too.
        only: the CLIs that have such a tool.
    """

    name: str
    do: str | Edit | Create | Use
    held: str = "f.txt"
    person: str = ""
    before: str = ""
    waits: bool = False
    git: bool = False
    needs: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Action:
    """Something that a developer's agent does every day.

    Attributes:
        name: a short sentence.
        steps: commands, one tool call each.
        design: why coord refuses it, where it does.
        price: a word, and what an ordinary user's session says in its place: a price that is stated.
        needs: programs, or `root`.
    """

    name: str
    steps: tuple[str, ...]
    design: str = ""
    price: tuple[str, str] | None = None
    needs: tuple[str, ...] = ()


#: What the held file has; git has something else, so that git would change it.
HELD = "held line 1\nheld line 2\nheld line 3\n"
COMMITTED = "committed line\n"
#: Written by hand to fit HELD.
PATCH = """\
--- a/f.txt
+++ b/f.txt
@@ -1,3 +1,3 @@
 held line 1
-held line 2
+HACK
 held line 3
"""
MAKEFILE = """\
.PHONY: hack all test
all: build/out.txt
build/out.txt: free.txt
\tmkdir -p build && cp free.txt build/out.txt
test:
\t@echo tests pass
hack:
\techo HACK > f.txt
"""
PACKAGE = """\
{"name": "small", "version": "1.0.0", "private": true,
 "scripts": {"hack": "echo HACK > f.txt", "test": "echo tests pass", "build": "node -e \\"console.log(6*7)\\""}}
"""
#: A formatter of everything below its folder, as some teams write one.
FORMATTER = """\
import pathlib
for file in sorted(pathlib.Path(".").rglob("*.txt")):
    try:
        file.write_text(file.read_text().upper())
    except OSError as error:
        print(error)
"""
#: What the repository holds: committed, then as it is found when an entry begins.
FIRST = {
    "f.txt": COMMITTED, "free.txt": "free line 1\nfree line 2\n", "pkg/deep/g.txt": COMMITTED, "d/x.txt": COMMITTED,
    "d/e/y.txt": COMMITTED, "sql/one.sql": COMMITTED, "Makefile": MAKEFILE, "package.json": PACKAGE,
    "hack.sh": "#!/bin/sh\necho HACK > f.txt\n", "hack.py": "open('f.txt', 'w').write('HACK')\n",
    "format.py": FORMATTER, "change.diff": PATCH, "src/app.py": "import sys\n\n\ndef main():\n    print('app', len(sys.argv))\n\n\nmain()\n",
    "a/index.ts": "export const a = 1;\n", "own/index.ts": "export const b = 2;\n", ".gitignore": "build/\nnode_modules/\n*.log\n",
}
NOW = {**FIRST, **dict.fromkeys(("f.txt", "pkg/deep/g.txt", "d/x.txt", "d/e/y.txt", "sql/one.sql"), HELD), "loose.txt": HELD}
#: What is different on the other branch.
TOPIC = {"f.txt": "topic\n", "free.txt": "topic\n", "pkg/deep/g.txt": "topic\n", "d/x.txt": "topic\n", "sql/one.sql": "topic\n"}
