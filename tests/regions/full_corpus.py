"""Every Python file of this interpreter and of what is installed beside it, held against Python's own
parser, and whatever else of the table's languages lies there: `make regions-corpus`, in all or the
second of eight parts (`SLICE=2/8`)."""

from __future__ import annotations

import sys
import sysconfig
import warnings
from collections import Counter
from pathlib import Path

from coordinator.regions.languages import language_of
from coordinator.regions.reader import outline
from tests.regions.conftest import python_files
from tests.regions.held import definitions, divided, held


def main(part: str) -> int:
    """Print the figures of this part; the exit code is 1 where a partition failed or a definition was missed."""
    warnings.simplefilter("ignore")
    files: Counter[str] = Counter()
    failed: list[str] = []
    missed: list[str] = []
    looked_for = 0
    others = {
        file for name in ("stdlib", "purelib", "include")
        for file in Path(sysconfig.get_paths()[name]).rglob("*")
        if file.is_file() and file.suffix != ".py" and language_of(file.name)
    }
    at, parts = map(int, part.split("/"))
    for file in [*python_files(), *sorted(others)][at - 1::parts]:
        data = file.read_bytes()
        language = language_of(file.name)
        assert language is not None
        files[language] += 1
        found = outline(data, language)
        try:
            held(data, found)
        except AssertionError:
            failed.append(str(file))
        if language == "python":
            try:
                expected = definitions(data)
            except (SyntaxError, ValueError):
                files["python, not read by ast"] += 1
                continue
            looked_for += len(expected)
            missed += [f"{file}: {name} (line {line})" for name, line in expected - divided(found)]
    print(", ".join(f"{count} {language}" for language, count in files.most_common()))
    held_for = sum(files.values()) - files["python, not read by ast"]
    print(f"partition, unique and lawful names: {held_for} files, {len(failed)} failed")
    print(f"definitions by ast: {looked_for}, missed: {len(missed)}")
    print("\n".join([*failed[:20], *missed[:20]]))
    return bool(failed or missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "1/1"))
