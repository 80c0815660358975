"""Profiles: how an agent is launched, one TOML file each, data only.

They are looked for in `agents/` of the repository, then in the user's `~/.config/coord/agents/`,
then among those that travel with coord; the first of a name wins. One in the repository counts only
after a person has trusted it (`coord trust`), because it names commands. The module reads files,
starts nothing, and knows no daemon.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from coordinator import toml_tables
from coordinator.dialects.limits import LimitTable
from coordinator.dialects.stream import StreamTable
from coordinator.dialects.table import HookTable
from coordinator.files import trusted
from coordinator.files.programs import missing
from coordinator.profiles.entries import Entry, Session, Switch, Trust
from coordinator.resources import packaged
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import convert
from coordinator.words.wrong_values import choices, in_words

#: The placeholders in a command's braces.
PLACEHOLDERS = ("prompt", "prompt_file", "task", "root", "agent", "python", "plugins", "session",
                "options", "files")
#: What a person may pass on to the agent itself: the profile says how.
OPTIONS = ("model", "max_turns", "budget_usd")
#: The folder of profiles, in a repository and in coord itself.
OWN = "agents"
#: The folder of coord's own plugins for agents without hooks.
PLUGINS = Path(__file__).resolve().parents[1] / "plugins"
_BRACED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_SHELL_SIGNS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"})
#: The kernel takes no single argument longer than this (bytes, with its final NUL).
ARGUMENT_BYTES_MAX = 128 * 1024 - 1

PromptWay = Literal["argument", "stdin", "file"]


class McpTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[mcp]` section: how an agent's MCP client tells which session it is.

    Attributes:
        clients: how it names itself (beginnings), for one that was set up by hand.
        session_meta, call_meta: keys of a call's `_meta`: the session's id, the tool call's id (the
            session's may also be in the profile's `session_env`).
        session_argument, call_argument: the same as arguments, which coord's own hook or plugin
            adds to each call.
    """

    clients: tuple[str, ...] = ()
    session_meta: str = ""
    call_meta: str = ""
    session_argument: str = ""
    call_argument: str = ""


class Profile(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How one kind of agent is launched.

    `command` is a list of arguments, run without a shell. `prompt` says how the prompt goes in: as
    the argument `{prompt}`, on standard input, or in the file `{prompt_file}`. `{options}` and
    `{files}`, words of their own, stand for what `options` makes of a person's options and of the
    task's files. `resume` is the command that continues the session `{session}`, and `take_over`
    the one with which a person does so, at a terminal. `session_env` is the variable in which the
    agent's programs find their session's id. `in_session` goes before what a person types after the
    program's name, in a session that coord starts; not if they give its first word themselves.
    """

    name: str
    description: str = ""
    command: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    take_over: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = {}
    prompt: PromptWay = "file"
    env: dict[str, str] = {}
    success_codes: tuple[int, ...] = (0,)
    versions_tried: tuple[str, ...] = ()
    session_env: str = ""
    in_session: tuple[str, ...] = ()
    stream: StreamTable | None = None
    limits: LimitTable | None = None
    hooks: HookTable | None = None
    mcp: McpTable | None = None
    wire: tuple[Entry, ...] = ()
    off: tuple[Switch, ...] = ()
    session: Session | None = None
    trust: Trust | None = None
    source: str = ""

    def with_command(self, text: str) -> Profile:
        """This profile with a command as it is typed at a shell, quotes and all.

        Raises:
            Refusal: INVALID: quotes that do not match, a pipe or redirection, an unknown
                placeholder.
        """
        try:
            words = tuple(shlex.split(text))
        except ValueError as bad:
            raise Refusal(
                Code.INVALID, f"--command cannot be split into words: {bad}.",
                next="Check its quotes.",
            ) from None
        ended = [";"] * (";" in _QUOTED.sub("", text))  # it needs no blank before it
        signs = sorted(_SHELL_SIGNS.intersection([*words, *ended]))
        if signs:
            raise Refusal(
                Code.INVALID, f"--command is run without a shell, which {signs[0]!r} needs.",
                next=f"--command {shlex.quote('sh -c ' + shlex.quote(text))}",
            )
        made = msgspec.structs.replace(self, command=words, source="--command")
        check(made)
        return made

    def argv(
        self, facts: Mapping[str, str], options: Mapping[str, str] | None = None,
        files: Sequence[str] = (),
    ) -> list[str]:
        """The arguments for one task.

        Args:
            facts: a text for each placeholder; with a `session`, that one is continued.
            options: what a person passes on (`OPTIONS`).
            files: the task's files, for agents that must know them.

        Raises:
            Refusal: LIMIT: the prompt is too long for an argument; INVALID: the agent has no way
                to be given an option.
        """
        words = self.resume if facts.get("session") and self.resume else self.command
        result: list[str] = []
        for word in words:
            if word == "{options}":
                for name, value in (options or {}).items():
                    result += [text.replace("{value}", value) for text in self._option(name)]
            elif word == "{files}":
                for path in files:
                    result += [text.replace("{value}", path) for text
                               in self.options.get("file", ())]
            else:
                result.append(_filled(word, facts))
        if any(len(os.fsencode(word)) > ARGUMENT_BYTES_MAX for word in result):
            raise Refusal(
                Code.LIMIT, f"The prompt is too long to be an argument of {result[0]} "
                f"({ARGUMENT_BYTES_MAX} bytes at most).",
                next="Use {prompt_file} in the command, or shorten the task's prompt.",
            )
        return result

    def for_a_person(self, facts: Mapping[str, str]) -> list[str]:
        """The arguments with which a person continues the session in `facts`; none if the agent has
        no way for that."""
        return [_filled(word, facts) for word in self.take_over]

    def check_options(self, options: Mapping[str, str]) -> None:
        """Whether the agent can be given these.

        Raises:
            Refusal: INVALID.
        """
        for name in options:
            self._option(name)

    def _option(self, name: str) -> tuple[str, ...]:
        if name not in self.options or "{options}" not in self.command:
            flag = name.replace("_", "-")
            raise Refusal(
                Code.INVALID, f"{self.name} has no way to be given --{flag}. Nothing was started.",
                next=f"Leave --{flag} out, or say how in agents/{self.name}.toml ([options]).",
            )
        return self.options[name]

    def environment(self, facts: Mapping[str, str]) -> dict[str, str]:
        """The environment of the agent's process, besides coord's own variables."""
        return {key: _filled(value, facts) for key, value in self.env.items()}

    def program(self) -> str:
        """The program that will be run.

        Raises:
            Refusal: INVALID: no command, or no such program.
        """
        if not self.command:
            raise Refusal(
                Code.INVALID, f"The profile {self.name} has no command of its own.",
                next="Add --command 'my-agent --prompt-file {prompt_file}'.",
            )
        name = _BRACED.sub(lambda match: sys.executable if match[1] == "python" else match[0],
                           self.command[0])
        text = shutil.which(name)
        if text is None:
            refusal = missing(name)[0]
            refusal.message = f"{self.source}: {refusal.message}"
            raise refusal
        return text


def _filled(word: str, facts: Mapping[str, str]) -> str:
    values = {"plugins": str(PLUGINS), **facts}
    return _BRACED.sub(lambda match: values.get(match[1], match[0]), word)


def load(name: str, root: Path) -> Profile:
    """The profile called `name`, as seen from the repository at `root`. An untrusted one in the
    repository is passed over.

    Raises:
        Refusal: INVALID, naming the file and the line or key; or the names that there are.
            UNTRUSTED: there is only an untrusted one.
    """
    if not _NAME.fullmatch(name):
        raise Refusal(Code.INVALID, f"{name[:60]!r} cannot be the name of a profile.",
                      next=f"Choose one of: {', '.join(names(root))}.")
    passed_over = False
    for folder in folders(root):
        file = folder / f"{name}.toml"
        data = _bytes(file)
        if data is None:
            continue
        if folder == root / OWN and not _counts(name, root, data):
            passed_over = True
            continue
        return _parsed(data, file, name)
    if passed_over:
        raise Refusal(
            Code.UNTRUSTED, f"The profile {OWN}/{name}.toml lies in the repository, and no person "
            "has trusted it. It was not used.", profile=name,
        )
    near = [other_name for other_name in names(root)
            if other_name.startswith(name)] or difflib.get_close_matches(
        name, names(root), 1)
    meant = f"; did you mean {near[0]}?" if name and near else "."
    raise Refusal(
        Code.INVALID, f"There is no agent profile called {name!r}{meant}",
        next=f"Choose one of: {', '.join(names(root))}; or write agents/{name}.toml.",
    )


def program_name(name: str, root: Path) -> str:
    """The name of a profile's program; empty if it has none, or cannot be read."""
    try:
        command = load(name, root).command
    except Refusal:
        return ""
    return Path(command[0]).name if command else ""


def untrusted(root: Path) -> dict[str, bytes]:
    """The repository's own untrusted profiles, by name, with their files' content."""
    folder = root / OWN
    stems = sorted(file.stem for file in folder.glob("*.toml")) if folder.is_dir() else []
    own = {name: _bytes(folder / f"{name}.toml") for name in stems if _NAME.fullmatch(name)}
    return {name: data for name, data in own.items()
            if data is not None and not _counts(name, root, data)}


def is_packaged(name: str) -> bool:
    """Whether coord itself brings a profile of this name."""
    return _bytes(packaged(OWN) / f"{name}.toml") is not None


def _counts(name: str, root: Path, data: bytes) -> bool:
    """Whether the repository's own profile, which holds `data`, is used: a person has trusted it,
    or it says the same as coord's own."""
    return (data == _bytes(packaged(OWN) / f"{name}.toml")
            or trusted.is_trusted(root, f"{OWN}/{name}.toml", data))


def _bytes(file: Path) -> bytes | None:
    """The content of a profile's file; None if there is none.

    Raises:
        Refusal: STORAGE.
    """
    try:
        return file.read_bytes() if file.is_file() else None
    except FileNotFoundError:
        return None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{file} cannot be read: {bad.strerror}.") from None


def profiles(root: Path, *, broken: bool = True) -> list[Profile]:
    """Every profile that can be used in the repository at `root`, by name.

    Args:
        broken: raise for one with an error; otherwise it is passed over.

    Raises:
        Refusal: INVALID, naming the file that has an error.
    """
    result = []
    for name in names(root):
        try:
            result.append(load(name, root))
        except Refusal as refusal:
            if broken and refusal.code is not Code.UNTRUSTED:
                raise
    return result


def names(root: Path) -> list[str]:
    """The names of all profiles, whether they can be read or not."""
    matches = {
        file.name.removesuffix(".toml")
        for folder in folders(root)
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }
    return sorted(name for name in matches if _NAME.fullmatch(name))


def folders(root: Path) -> Iterator[Path]:
    """The folders of profiles, in the order of the search."""
    yield root / OWN
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    yield Path(config) / "coord" / "agents"
    yield packaged(OWN)


def check(profile: Profile) -> None:
    """Check what the types cannot: placeholders, and that the prompt is used.

    Raises:
        Refusal: INVALID.
    """
    used = [placeholder for word in (*profile.command, *profile.resume, *profile.take_over)
            for placeholder in _BRACED.findall(word)]
    unknown = [name for name in used if name not in PLACEHOLDERS]
    if unknown:
        raise _bad(
            profile.source, f"there is no placeholder {{{unknown[0]}}} for a command",
            "Use " + _listed([f"{{{name}}}" for name in PLACEHOLDERS]) + ".",
        )
    needed = {"argument": "prompt", "file": "prompt_file"}.get(profile.prompt)
    if profile.command and profile.prompt == "argument" and needed not in used:
        raise _bad(profile.source, "prompt = \"argument\", but {prompt} is not in the command",
                   "Put {prompt} where the prompt belongs, or choose prompt = \"stdin\".")
    for pattern in profile.limits.patterns if profile.limits is not None else ():
        try:
            re.compile(pattern)
        except re.error as bad:
            raise _bad(profile.source, f"[limits]: {pattern!r} is no regular expression ({bad})",
                       "Correct it.") from None
    if profile.take_over:
        _check_take_over(profile)


def _check_take_over(profile: Profile) -> None:
    """Check that a person and the launch can find a session again after a take-over."""
    wanted = (
        (any("{session}" in word for word in profile.take_over), "{session} is not in it",
         "Put {session} where the session's id belongs."),
        (bool(profile.resume), "there is no resume",
         "Say in `resume` how it goes on unattended afterwards."),
        (profile.stream is not None and any(rule.session for rule in profile.stream.rules),
         "nothing tells its session",
         "Give a rule of [stream] its `session`."),
    )
    for holds, what, step in wanted:
        if not holds:
            raise _bad(profile.source, f"take_over, but {what}", step)


def _parsed(data: bytes, file: Path, name: str) -> Profile:
    try:
        raw = toml_tables.read(data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise _bad(str(file), in_words(bad)) from None
    raw.setdefault("name", name)
    raw["source"] = str(file)
    try:
        made = convert(raw, Profile)
    except msgspec.ValidationError as bad:
        among = ", ".join(choices(bad, Profile))
        raise _bad(str(file), in_words(bad), among and f"Correct {file}: it may be {among}."
                   ) from None
    if made.name != name:
        raise _bad(str(file), f"name is {made.name!r}, but the file is called {name}.toml")
    check(made)
    return made


def _bad(source: str, what: str, step: str = "") -> Refusal:
    return Refusal(Code.INVALID, f"{source}: {what}. Nothing was started.",
                   next=step or f"Correct {source}.")


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + f" or {items[-1]}"
