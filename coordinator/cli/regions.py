"""`coord regions`, `coord commit-region` and `coord propose`.

`coord regions FILE` lists the parts of a file by name and asks no coordinator, because they follow
from the bytes alone. The other two commands change files: the coordinator writes them. `coord
propose` applies a change without a lease if the content that it was made from is still there.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from typing import TYPE_CHECKING, Annotated, Any

from coordinator.cli.app import agent_or_refuse, as_text, ask, carry_out, print_json, say, width
from coordinator.cli.text_files import read_text
from coordinator.client.locating import locate_root
from coordinator.commands.lists import columns, wrapped
from coordinator.commands.signatures import AgentName, Argument, AsJson, Option, command
from coordinator.files.content import BINARY_PROBE_BYTES
from coordinator.files.roots import root_in_worktree
from coordinator.slices.messages.commands import news
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import FROM_ROOT
from coordinator.words.texts import counted

if TYPE_CHECKING:
    from coordinator.regions.outline import Outline, Region
    from coordinator.source.outlines import Outlines

#: Larger files (bytes) are not read.
READ_BYTES_MAX = 256 << 20


@command("regions")
def regions(
    file: Annotated[str, Argument("A file.")],
    nested: Annotated[bool, Option("Also the definitions inside of functions.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the regions of a file, by name: what can be leased alone, `FILE::NAME`."""
    path, name, _ = placed(file, "regions")
    data = text_of(path, file, "regions")
    with _asking() as outlines:
        outline = _outline(outlines, name, data, nested=nested)
    if as_json:
        items = [_row(name, outline, region, data) for region in outline.regions]
        print_json({
            "resource": name, "language": outline.language, "size": outline.size,
            "note": outline.note, "items": items, "next": None,
        })
        return
    count = len(outline.regions)
    sentences = [f"{file_names.shown(name)}: {outline.language or 'unknown language'}, "
            f"{outline.size:,} bytes, {count} region{'s' * (count != 1)}"]
    if outline.note:
        sentences.append(f"One region, the file itself: {outline.note}.")
    for sentence in sentences:
        for line in wrapped(sentence, width(), 0):
            say(line)
    rows = [
        (region.name or name, region.kind, _lines(region),
         _content_hash(outline, region, data)[7:15])
        for region in outline.regions
    ]
    for line in columns(("region", "kind", "lines", "sha256"), rows, "/===", width()):
        say(line)


@command("commit-region")
def commit_region(
    resources: Annotated[list[str], Argument("Regions, `FILE::NAME`.")],
    texts: Annotated[list[str] | None, Option(
        "The file with its new text; one for each region, in their order. `-`, or none for a "
        "single region: the standard input. An empty file removes it.", "--from")] = None,
    agent: AgentName = None,
    content_hash: Annotated[list[str] | None, Option(
        "Of the text that it was made from; one for each region.", "--hash")] = None,
    token: Annotated[
        str | None, Option("The `lease_token` that `coord lock --json` told; not needed.")
    ] = None,
    after: Annotated[list[str] | None, Option(
        "It is new, and comes behind this region of its file (empty: at the end of what contains "
        "it); one for each region, `-` for one that is there.", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the new text of leased regions, of all of them or of none."""
    sources, hashes, places = texts or ["-"], content_hash or [], after or []
    _check_counts(resources, texts or (sources if len(resources) == 1 else []),
                  hashes or resources, places or resources)
    regions_given = _list_given(resources, sources, hashes, places, token)
    if not texts and not regions_given[0].text.strip():
        raise Refusal(
            Code.INVALID, f"The standard input has no text for {resources[0]}. Nothing was "
            "written.", next="`--from /dev/null` removes it.",
        )
    holder = agent_or_refuse(agent)
    done = ask(rq.CommitRegion(agent=holder, regions=regions_given,
                               cwd=as_text(os.getcwd())))  # noqa: PTH109
    if as_json:
        print_json(done)
        return
    for committed_region in done.regions:
        what = "removed" if committed_region.content_hash is None else committed_region.content_hash
        say(f"{committed_region.resource}  {what}")
    for warning in done.warnings:
        say(f"warning: {warning}")
    carry_out(news, agent=holder)


def _list_given(resources: list[str], sources: list[str], hashes: list[str], places: list[str],
                token: str | None) -> list[rq.RegionText]:
    """Return the regions with their new texts, which are read here."""
    return [
        rq.RegionText(resource=name, text=read_text(source), lease_token=token,
                      content_hash=hashes[n] if hashes else None,
                      after=places[n] if places and places[n] != "-" else None)
        for n, (name, source) in enumerate(zip(resources, sources, strict=True))
    ]


def _check_counts(resources: list[str], texts: list[str], hashes: list[str],
                  places: list[str]) -> None:
    """Whether each option is given once for each region."""
    for option, given, ending in (
            ("--from FILE", texts, "."), ("--hash HASH", hashes, "."),
            ("--after NAME", places, "; `-` for one that is there already.")):
        if len(given) != len(resources):
            raise Refusal(
                Code.INVALID, f"{counted(len(resources), 'region')}, and "
                f"`{option.partition(' ')[0]}` is given {counted(len(given), 'time')}. Nothing was "
                "written.", next=f"Give `{option}` once for each region, in their order{ending}",
            )


def _asking() -> Outlines:
    from coordinator.source.outlines import Outlines  # each start of `coord` would pay for it

    return Outlines(forks=True)


def _outline(outlines: Outlines, name: str, data: bytes, *, nested: bool) -> Outline:
    from coordinator.regions.languages import language_of

    return outlines.of(data, language_of(name, data), nested=nested)


def _content_hash(outline: Outline, region: Region, data: bytes) -> str:
    """Return the hash that leases show, and that commits are based on."""
    from coordinator.regions.outline import bare

    whole = data if region.kind == "header" else bare(outline, data[region.start:region.end])
    return "sha256:" + hashlib.sha256(whole).hexdigest()


def _row(file: str, outline: Outline, region: Region, data: bytes) -> dict[str, Any]:
    return {
        "resource": f"{file}::{region.name}" if region.name else file, "name": region.name,
        "kind": region.kind, "first_line": region.first_line, "last_line": region.last_line,
        "line": region.line, "start": region.start, "end": region.end,
        "spans": region.spans, "hash": region.hash,
        "content_hash": _content_hash(outline, region, data),
    }


def _lines(region: Region) -> str:
    if not region.spans:
        return "none"
    first, last = region.first_line, region.last_line
    return str(first) if first == last else f"{first}-{last}"


def placed(typed: str, command: str) -> tuple[str, str, str]:
    """The real path of the typed name, its name from the root, and that root: of the repository, or
    of the linked worktree that contains the working directory.

    Raises:
        Refusal: INVALID, OUTSIDE_REPO.
    """
    if not typed or "\0" in typed:
        raise Refusal(Code.INVALID, "Name a file.", next=f"`coord {command} FILE`")
    root, cwd = locate_root(), os.getcwd()  # noqa: PTH109
    below = typed.removeprefix(FROM_ROOT)
    path = os.path.realpath(
        typed if below == typed
        else os.path.join(root_in_worktree(root, cwd), below))  # noqa: PTH118
    # A linked worktree may be inside the repository's own folder, as a launch's are.
    for top in (root_in_worktree(root, os.path.dirname(path)), str(root)):  # noqa: PTH120
        base = os.path.realpath(top).rstrip("/") + "/"
        if path.startswith(base):
            return path, path[len(base):], base.rstrip("/") or "/"
    if os.path.isdir(path):  # noqa: PTH112
        return path, typed, str(root)
    raise Refusal(
        Code.OUTSIDE_REPO, f"{file_names.shown(typed)} is not below {root}. Nothing was read.",
        next=f"`cd {shlex.quote(os.path.dirname(path))}`, and ask there.",  # noqa: PTH120
    )


def text_of(path: str, typed: str, command: str) -> bytes:
    """Return the file's bytes.

    Raises:
        Refusal: INVALID: no file, or not one of text; LIMIT; STORAGE.
    """
    shown, quoted = file_names.shown(typed), shlex.quote(typed)
    try:
        with open(path, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError
            if not stat.S_ISREG(status.st_mode):
                raise Refusal(Code.INVALID, f"{shown} is no file of bytes.", next="Name a file.")
            if status.st_size > READ_BYTES_MAX:
                raise Refusal(
                    Code.LIMIT, f"{shown} has more than {READ_BYTES_MAX:,} bytes. It was not read.",
                    next=f"`coord lock {quoted}` leases it as a whole.",
                )
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise Refusal(
            Code.INVALID, f"There is no file {shown}.", next="`ls` shows what is here.",
        ) from None
    except IsADirectoryError:
        raise Refusal(
            Code.INVALID, f"{shown} is a directory; it has files, and these have regions.",
            next=f"`coord {command} FILE`, with a file in it.",
        ) from None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{shown} could not be read ({bad.strerror or bad}).") from None
    if b"\0" in data[:BINARY_PROBE_BYTES]:
        raise Refusal(
            Code.INVALID, f"{shown} is binary; it has no regions.",
            next=f"`coord lock {quoted}` leases it as a whole.",
        )
    return data


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


@command("propose")
def propose(
    resource: Annotated[str, Argument("A file, a region (path::name) or a key.")],
    version: Annotated[str | None, Option(
        "What you read: `sha256:…`, of a key its number; left out: it is not there yet.")] = None,
    content: Annotated[
        str | None, Option("File with the new content; `-`: standard input.", "--from")
    ] = None,
    patch: Annotated[
        str | None, Option("File with a unified diff (of a key, a merge patch); `-`.")
    ] = None,
    delete: Annotated[bool, Option("Remove it.")] = False,
    agent: AgentName = None,
    note: Annotated[str, Option("Why.", "-m")] = "",
    retry: Annotated[bool, Option("Where others hold it: keep it, and try again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change a file, region or key without a lease, unless it has changed since you read it."""
    if (content is not None) + (patch is not None) + delete != 1:
        raise Refusal(
            Code.INVALID, f"{resource}: say what it is to be by one of --from, --patch and "
            "--delete. Nothing was written.", next="coord propose --help")
    writer = agent_or_refuse(agent)
    made = ask(rq.Propose(
        agent=writer, note=note, retry=retry, cwd=os.getcwd(),  # noqa: PTH109
        changes=[rq.ProposedChange(
            resource=resource, version=version, delete=delete,
            content=read_text(content) if content is not None else None,
            patch=read_text(patch) if patch is not None else None)],
    ))
    if as_json:
        print_json(made)
        return
    for proposed in made.changes:
        say(f"{proposed.resource}  {proposed.version or 'removed'}")
    for warning in made.warnings:
        say(f"warning: {warning}")
    carry_out(news, agent=writer)
