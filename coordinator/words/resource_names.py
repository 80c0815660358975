"""Names of resources: what a lease can be on, how it is written, and what contains what.

Owns the syntax of a resource as people and agents type it, and the *scope* of each resource: a
string whose prefix order is containment, so that "who holds something that overlaps this" is a
search of an index. It never touches a disk: whether two spellings mean one file is the business of
`files.canonical`, which hands canonical names to `resource`.

Scopes, by example:

    ./                        p/                       the whole repository
    a/                        p/a/
    a/b.py                    p/a/b.py/                (also as a directory: one path, one scope)
    a/b.py::C.m               p/a/b.py/::C/m/
    a/b.py::<header>          p/a/b.py/::<header>/
    key:account:1             k/key/account/1/
    src/**/*.sql              p/src/                   (the directories before the first wildcard)

Two resources can overlap only if one scope is a prefix of the other, with one exception: a
`<header>` also overlaps its sisters, the other regions of its file. `reach` says where to look.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, get_args

import msgspec

from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal

Kind = Literal["file", "dir", "glob", "region", "key"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: A resource as typed may not be longer than this (bytes of UTF-8): the kernel's own path limit.
NAME_BYTES_MAX = 4096
#: No path may have more parts. Each part of a path costs a look at the disk and a look into the
#: index; no file system that people work on comes near.
NAME_PARTS_MAX = 256
#: The region of everything outside named definitions: imports, constants, order.
HEADER = "<header>"
#: Begins the key of a task: `task:T-3` is the task itself, as a resource.
TASK = "task:"
#: Begins the keys of write windows, which coord itself takes: `edit:PATH`.
WINDOW = "edit:"
#: Begins a task's resources that are only read.
READ = "shared:"
#: Begin keys, whatever files are there.
SURE_KEYS = ("key:", "lock:", TASK, WINDOW, READ)
#: The name of the whole repository.
WHOLE = "./"
#: Begins a path that is typed below the root and meant from it, as in git.
FROM_ROOT = ":/"

_PLAIN = re.compile(r"[A-Za-z0-9_./+@~ -]*[A-Za-z0-9_+@~-]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_KEY = re.compile(r"[a-z][a-z0-9_-]*:(?!:)")
#: Characters that make a typed text a glob: a star, a question mark, or an escaped one of these.
#: Brackets alone do not: `app/[id]/page.tsx` is a file name of web frameworks.
_WILD = re.compile(r"[*?]|\\[*?\[\]\\]")
_WILD_OR_ESCAPE = re.compile(r"[*?\[\\]")
_DIR_ENDINGS = ("/", "/.", "/..")


class Resource(msgspec.Struct, frozen=True, gc=False):
    """What a lease is on.

    Attributes:
        name: the canonical display: a repo-relative POSIX path (a directory ends in `/`), a glob,
            `path::Qualified.name`, or `word:part:…`. One resource has one name.
        kind: which of the five.
        scope: the string that is compared; a prefix of the scope of all that it contains.
    """

    name: str
    kind: Kind
    scope: str


#: What a path that ends in a symlink means: the link's target; the link itself; or the link, but
#: its target if that is a directory (as `mv f link` moves into it).
Link = Literal["followed", "itself", "entered"]


class Located(msgspec.Struct, frozen=True, gc=False):
    """The meaning of a text, and its place, by a look at the disk."""

    resource: Resource
    inode: str | None
    """Which existing regular file it is (of a region: that it is in), see `files.identity`."""
    path: str | None
    """The absolute real path, in the worktree that was addressed; None for keys and globs."""
    worktree: str | None = None
    """Its linked worktree; None for the main one, and for keys and globs."""
    links: int = 1
    """How many names the file has."""
    size: int = 0
    """The size of an existing regular file, in bytes."""
    there: bool = True
    """Whether anything at all was found at `path`."""
    is_link: bool = False
    """It is a symlink itself, and not what that leads to."""
    through: tuple[str, ...] = ()
    """The absolute real paths of the symlinks by whose names this was named: the one that was
    typed, the one that leads to, and so on."""

    @property
    def has_content(self) -> bool:
        """Whether bytes of its own can be kept of it: it is a file, or a link."""
        return self.path is not None and (self.inode is not None or self.is_link)


def kind_of(text: str) -> Kind:
    """The kind that `text` is written as. Syntax only; `parse` also checks that it is well formed.

    An existing directory written without its slash reads as `file` here.
    """
    if _KEY.match(text):
        return "key"
    if "::" in text and _region_at(text) > 0:
        return "region"
    if _WILD.search(text):
        return "glob"
    if text in ("", ".", "..") or text.endswith(_DIR_ENDINGS):
        return "dir"
    return "file"


def may_be_file(key: str) -> bool:
    """Whether a text that reads as a key is a file where one of that name is there."""
    return not key.startswith(SURE_KEYS)


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Kind, str, str]:
    """Split what was typed into `(kind, path part, rest)`.

    The rest is the dotted name of a region or the whole of a key, else empty.

    Raises:
        Refusal: INVALID, naming what is wrong: empty, too long, a control character, not UTF-8,
            a malformed region, a key with an empty part.
    """
    if (
        len(text) <= NAME_BYTES_MAX and text.count("/") < NAME_PARTS_MAX
        and _PLAIN.fullmatch(text)
    ):
        return "file", text, ""
    check_text(text)
    kind = kind_of(text)
    if kind == "key":
        _check_key(text)
        return "key", "", text
    if kind == "region":
        position = _region_at(text)
        path, region = text[:position], text[position + 2 :]
        _check_region(text, path, region)
        return "region", path, region
    if text.startswith("::") or text.endswith("::"):
        raise _invalid(
            text, "it looks like a region, `path::Qualified.name`, but one side of `::` is empty"
        )
    return kind, text, ""


def check_bytes(text: str) -> None:
    """Refuse a name with a byte that is no UTF-8, as `file_names.from_bytes` gives it.

    Raises:
        Refusal: INVALID.
    """
    if sign := file_names.hides_bytes(text):
        raise _invalid(
            file_names.shown(text),
            f"{file_names.shown(sign)} in it is a byte that is no UTF-8. A file with such a name "
            "is leased with its directory",
        )


def check_text(text: str) -> None:
    """Refuse text that can name nothing, whatever its kind.

    Raises:
        Refusal: INVALID.
    """
    if not text or text.isspace():
        raise Refusal(
            Code.INVALID, "The resource is empty. The whole repository is written `./`.",
            resource=text,
        )
    if len(text) > NAME_BYTES_MAX:
        raise _invalid(text[:80] + "…", f"it is longer than {NAME_BYTES_MAX} bytes")
    if text.count("/") >= NAME_PARTS_MAX or text.count(":") >= NAME_PARTS_MAX:
        raise _too_deep(text)
    if match := _CONTROL.search(text):
        what = "a NUL" if match[0] == "\0" else f"the control character U+{ord(match[0]):04X}"
        raise _invalid(text, f"it contains {what} at position {match.start()}")
    if not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise _invalid(text, "it is not valid UTF-8") from None
        if size > NAME_BYTES_MAX:
            raise _invalid(text[:80] + "…", f"it is longer than {NAME_BYTES_MAX} bytes")
        check_bytes(text)


def resource(name: str, kind: Kind, *, fold_case: bool = False) -> Resource:
    """The resource with a name that is canonical already.

    Args:
        name: relative to the root, no `.`/`..`/empty parts; a directory may lack its final slash.
        kind: trusted, not guessed: `app/[id].tsx` may well be a file.
        fold_case: the disk does not tell cases apart, so neither do path parts (keys and the names
            of regions still do).
    """
    if kind == "file":
        if name.isascii() and not fold_case and "::" not in name and "\\" not in name:
            return Resource(name, "file", f"p/{name}/")
        return Resource(name, "file", path_scope(name, fold_case))
    if kind == "dir":
        bare = name.strip("/")
        if bare in ("", "."):
            return Resource(WHOLE, "dir", "p/")
        return Resource(bare + "/", "dir", path_scope(bare, fold_case))
    if kind == "region":
        path, _, region = name.rpartition("::")
        return Resource(name, "region", path_scope(path, fold_case) + _region_scope(region))
    if kind == "glob":
        # A pattern names no bytes on a disk, so it can be kept in the form it is compared in.
        pattern = normal(name, fold_case)
        return Resource(pattern, "glob", path_scope(literal_prefix(pattern), fold_case))
    parts = _nfc(name).replace("\\", "\\\\").replace("/", "\\s").split(":")
    return Resource(name, "key", "k/" + "/".join(parts) + "/")


def path_scope(path: str, fold_case: bool = False) -> str:
    """The scope of a relative path, be it file or directory; of `""`, that of the repository."""
    path = normal(path.strip("/"), fold_case)
    if not path:
        return "p/"
    if "::" in path or "\\" in path:
        # A part that begins with `::` would read as a region; `\` is what escapes it.
        parts = (f"\\{p}" if p.startswith(("::", "\\")) else p for p in path.split("/"))
        path = "/".join(parts)
    return f"p/{path}/"


def normal(path: str, fold_case: bool = False) -> str:
    """The form in which two spellings of one path are equal."""
    path = _nfc(path)
    # Folding can take a text out of NFC again (U+0345, for one).
    return _nfc(path.casefold()) if fold_case else path


def path_in(scope: str) -> str:
    """The path of a path's or region's scope, as it is compared (NFC, folded if the scope is).

    Empty for the whole repository. The inverse of `path_scope` up to that normal form.
    """
    position = scope.find("/::")
    path = scope[2:position] if position > 0 else scope[2:-1]
    if "\\" in path:
        path = "/".join(p[1:] if p.startswith("\\") else p for p in path.split("/"))
    return path


def is_window(kind: str, name: str) -> bool:
    """Whether a lease of this kind and name is a write window: an edit that is in the middle."""
    return kind == "key" and name.startswith(WINDOW)


def write_window(path: str, fold_case: bool = False) -> Resource:
    """The key that the writer of this file has meanwhile. Nobody can type it."""
    parts = normal(path, fold_case).replace("\\", "\\\\").replace("/", "\\s")
    return Resource(WINDOW + path, "key", f"k/edit/{parts}/")


def task_resource(task: str) -> Resource:
    """A task itself, as a resource: what is leased, asked for and hinted at under its id."""
    return Resource(TASK + task, "key", f"k/task/{task}/")


def is_task(asked: Resource) -> bool:
    """Whether this is one task itself, `task:T-3`."""
    return asked.scope.startswith("k/task/") and asked.scope.count("/") == 3


def path_of(name: str, kind: str) -> str:
    """The path in a resource's name: of a region that of its file."""
    return name.rpartition("::")[0] if kind == "region" else name


def copy_name(name: str, worktree: str | None) -> str:
    """The name under which the content of a file or region is recorded. In a linked working tree it
    is another one."""
    return name if worktree is None else f"{worktree}/{name}"


def region_of(name: str) -> str:
    """The part of a region's name behind the path."""
    return name.rpartition("::")[2]


def file_scope(scope: str) -> str:
    """The scope of a region's file; any other scope unchanged."""
    position = scope.find("/::")
    return scope[: position + 1] if position > 0 else scope


def ancestors(scope: str) -> tuple[str, ...]:
    """Every proper prefix of `scope` that is itself a scope, outermost first.

    `p/a/b.py/` -> `("p/", "p/a/")`. For a key also `k/`, which no resource has.
    """
    result = []
    end = len(scope) - 1
    position = scope.find("/") + 1
    while 0 < position <= end:
        result.append(scope[:position])
        position = scope.find("/", position) + 1
    return tuple(result)


def reach(kind: Kind, scope: str) -> tuple[tuple[str, ...], str]:
    """Where all overlapping resources of this kind and scope are found: `(exact scopes, scope
    prefix)`.

    Every overlapping resource has one of the exact scopes, or a scope that begins with the prefix.
    Not everything there overlaps: globs have to be checked one by one.
    """
    above = ancestors(scope)
    if kind != "region":
        return above, scope
    home = file_scope(scope)
    if scope == f"{home}::{HEADER}/":
        return ancestors(home), home
    return (*above, f"{home}::{HEADER}/"), scope


def literal_prefix(pattern: str) -> str:
    """The directories of a glob before its first wildcard, without a final slash; may be empty.

    `src/db/*.sql` -> `src/db`. An escaped wildcard (`\\[id\\]`) is literal. The last part is never
    counted, even if literal: it names a file.
    """
    parts = pattern.split("/")
    literal: list[str] = []
    for part in parts[:-1]:
        if _WILD_OR_ESCAPE.search(part):
            plain = unescape(part)
            if plain is None:
                break
            part = plain
        literal.append(part)
    return "/".join(literal)


def unescape(part: str) -> str | None:
    """The one text that a part of a glob matches, or None if it holds a live wildcard."""
    result = []
    signs = iter(part)
    for sign in signs:
        if sign == "\\":
            sign = next(signs, "\\")
        elif sign in "*?[":
            return None
        result.append(sign)
    return "".join(result)


def as_typed(part: str) -> str:
    """A part of a glob as somebody types it. Brackets in a part without star and question mark mean
    themselves."""
    plain = unescape(part.replace("[", "\\[") if "\\" not in part else part)
    return part if plain is None else escape(plain)


def from_root(name: str) -> str:
    """Return a name, which begins at the root, as it is typed anywhere below the root."""
    return FROM_ROOT + name


def escape(path: str) -> str:
    """A glob that matches `path` and nothing else."""
    return _WILD_OR_ESCAPE.sub(r"\\\g<0>", path)


def _region_at(text: str) -> int:
    """The position of `::` between a path and a region; -1 if there is none."""
    position = text.rfind("::")
    if (position <= 0 or position + 2 == len(text) or text[position - 1] == "/"
            or "/" in text[position + 2 :]):
        return -1
    return position


def _check_region(text: str, path: str, region: str) -> None:
    if "*" in path:
        raise _invalid(text, "a region belongs to one file, so its path can have no wildcard")
    if "::" in path or path.endswith(":"):
        raise _invalid(text, "it has more than one `::`; the parts of a name are joined by dots")
    if region.count(".") >= NAME_PARTS_MAX:
        raise _too_deep(text)
    if "" in region.split("."):
        raise _invalid(text, "the name of its region has an empty part")


def _check_key(text: str) -> None:
    parts = text.split(":")
    if "" in parts:
        raise _invalid(text, "the key has an empty part between its colons")
    if text.startswith(WINDOW):
        raise _invalid(text, "such keys are coord's own, for whoever writes a file just now")
    if "*" in parts or "**" in parts:
        raise _invalid(text, "keys have no wildcards; a key covers every key that continues it")


def _region_scope(region: str) -> str:
    return "::" + _nfc(region).replace(".", "/") + "/"


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _too_deep(text: str) -> Refusal:
    return Refusal(
        Code.LIMIT, f"{text[:80] + '…'!r} has more than {NAME_PARTS_MAX} parts. Nothing was done.",
        next="Name a directory above it.", limit=NAME_PARTS_MAX,
    )


def _invalid(text: str, why: str) -> Refusal:
    shown = text.encode("utf-8", "backslashreplace").decode()
    return Refusal(
        Code.INVALID, f"{shown!r} is not a resource: {why}. Nothing was done.", resource=shown
    )
