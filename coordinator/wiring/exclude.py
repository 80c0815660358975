"""Settings files that coord has made in a repository, kept out of its commits.

They name the interpreter and paths of one machine. The module owns a few marked lines in
`.git/info/exclude`, which is of this clone only. A file that git tracks, or that a person had
before, gets none. Taking the lines out gives the file back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from coordinator.files.content import write_atomic
from coordinator.files.git import Git
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

_SAYS = ": settings of this machine; `coord init --remove` takes these lines out\n"
#: The second form follows a last line without a newline, and removes the newline again.
_BEGIN, _BEGIN_JOINED, _END = "# >>> coord" + _SAYS, "\n# +>> coord" + _SAYS, "# <<< coord\n"


def tracked(root: Path, files: Iterable[Path]) -> list[str]:
    """Those of these files that git tracks, relative to `root`."""
    git = Git(root)
    return [name for name in _names(root, files)
            if git.maybe("--literal-pathspecs", "ls-files", "--", name)]


def untracked(root: Path, files: Iterable[Path]) -> list[str]:
    """Those that git neither tracks nor ignores, relative to `root`."""
    git = Git(root)
    return [name for name in _names(root, files)
            if not git.maybe("--literal-pathspecs", "ls-files", "--", name)
            and not git.maybe("check-ignore", "--", name)]


def put_in(root: Path, files: Iterable[Path]) -> list[str]:
    """Make git ignore those of these files that it neither tracks nor ignores, and return them.

    Raises:
        Refusal: STORAGE, also where git answers nothing here, as in another user's repository.
    """
    new = untracked(root, files)
    if new and not _change(Git(root), new, []):
        raise Refusal(Code.STORAGE, f"git answers nothing in {root}, so {', '.join(new)} may get "
                      "into a commit.", next="Look what `git status` says here, then repeat.")
    return new


def take_out(root: Path, files: Iterable[Path]) -> None:
    """Take the lines for these files out again.

    Raises:
        Refusal: STORAGE.
    """
    _change(Git(root), [], _names(root, files))


def _split(text: str) -> tuple[str, str, str, str]:
    """The text before coord's block, the block's beginning (present or future), its content, and
    the text behind it."""
    begin = next((name for name in (_BEGIN, _BEGIN_JOINED) if name in text), "")
    if begin and _END in text.partition(begin)[2]:
        head, _, rest = text.partition(begin)
        inner, _, tail = rest.partition(_END)
        return head, begin, inner, tail
    return text, _BEGIN if not text or text.endswith("\n") else _BEGIN_JOINED, "", ""


def _change(git: Git, more: list[str], fewer: list[str]) -> bool:
    """Change coord's lines. Returns whether git names the file that has them."""
    text = git.maybe("rev-parse", "--git-path", "info/exclude")
    if not text:
        return False
    path = git.place / text
    try:
        before = path.read_text("utf-8", "surrogateescape") if path.exists() else ""
        head, begin, inner, tail = _split(before)
        prefix = git.maybe("rev-parse", "--show-prefix") or ""
        lines = dict.fromkeys(inner.splitlines())
        lines |= dict.fromkeys(_pattern(prefix + name) for name in more)
        for name in fewer:
            lines.pop(_pattern(prefix + name), None)
        block = begin + "".join(f"{line}\n" for line in lines) + _END if lines else ""
        after = head + block + tail
        if after == before:
            return True
        if not after:  # to git the same as none, which is what there was
            path.unlink()
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else None
        write_atomic(path, after.encode("utf-8", "surrogateescape"), mode)
        return True
    except (OSError, UnicodeError) as bad:
        raise Refusal(
            Code.STORAGE, f"{path} cannot be changed: {in_words(bad)}. It is as it was.",
            next="Keep what was wired out of commits by hand.",
        ) from None


def _pattern(name: str) -> str:
    return "/" + "".join("\\" + sign if sign in "\\*?[ " else sign for sign in name)


def _names(root: Path, files: Iterable[Path]) -> list[str]:
    return [path.relative_to(root).as_posix() for path in files if path.is_relative_to(root)]
