"""The settings of `coord.toml`: defaults, limits, and where each value came from.

The order is defaults, then `coord.toml` in the repository root or `COORD_CONFIG`, then the
environment variables `COORD_<SECTION>_<KEY>`. Only the daemon and the launcher read them; nothing
below sees a file or the environment.

`coord.toml` comes with the repository, from an unknown author. Values that weaken protection or
name a command (`WEAKENING`) count only after a person has trusted them (`coord trust`). Until then
the default holds. `COORD_CONFIG` and variables come from the user and need no trust.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from coordinator.files import trusted
from coordinator.impossible_values import find_impossible_values
from coordinator.rules import pools as pool_rule
from coordinator.words import wrong_values
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import convert

FILE = "coord.toml"
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
Count = Annotated[int, Meta(ge=1)]


class Section(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Base of the sections of `coord.toml`. A `ClassVar` is a constant that could be set until 0.2,
    without a known use. A file that still sets it is reported, and the rest of it counts."""

    @classmethod
    def list_constants(cls) -> set[str]:
        """The names that could be set once."""
        # texts, as they are written above
        return {name for name, hint in cls.__annotations__.items()
                if hint.startswith("ClassVar[")}


class Leases(Section, frozen=True):
    """Rights to resources. All in seconds, except the counts."""

    ttl_s: Seconds = 1800.0  # of a lease with no requested time
    ttl_max_s: Seconds = 86_400.0  # the longest that may be asked for
    max_hold_s: Seconds = 14_400.0  # renewals never carry a lease past this
    retry_s: Seconds = 15.0  # a refused acquisition is looked at again after this
    line_s: Seconds = 600.0  # and leaves the queue after this
    offered_ttl_s: Seconds = 120.0  # a lease granted to an absent waiter lasts this until used
    age_step_s: ClassVar[float] = 60.0  # waiting this long raises a waiter's priority by one
    wait_max_s: ClassVar[float] = 600.0  # the longest that one request may wait
    resources_max: Count = 500  # of one acquisition, or one task
    granularity: dict[str, Literal["region", "file"]] = msgspec.field(default_factory=dict)
    """Glob -> what an edit of such a file leases; the last matching one counts."""
    meaning: Literal["refuse", "off"] = "refuse"  # what breaks others' callers
    window_s: Seconds = 60.0  # from an edit's permission to its end, others' edits of the file wait


class Sweeping(Section, frozen=True):
    """The five-minute tidying."""

    interval_s: Seconds = 300.0  # how often everything is checked (expired leases close at once)


class Backlog(Section, frozen=True):
    """Retries of failed tasks."""

    attempts_max: Count = 3  # of a task that says nothing else; then a person has to look at it
    backoff_s: Seconds = 10.0  # doubled with each attempt
    backoff_max_s: ClassVar[float] = 600.0  # the longest rest after a failed attempt
    rounds_max: Count = 6  # refused commits of one claim in a row; then a person gets the task
    tasks_max: Count = 200_000  # in the backlog, finished ones too


class Reviewing(Section, frozen=True):
    """Partial work. Sizes in bytes."""

    quarantine: bool = False  # refuse new leases on files under review
    file_bytes_max: Count = 5 * 1024 * 1024  # larger files are neither shown nor merged
    kept_bytes_max: Count = 2 * 1024**3  # the size of .coord/blobs
    files_max: Count = 20_000  # files below one leased directory


class Looking(Section, frozen=True):
    """The limits of one look at the disk. A request that needs more is refused (LIMIT)."""

    bytes_max: Count = 1024 * 1024 * 1024  # read and kept, of all files together
    seconds_max: ClassVar[float] = 120.0  # of one look


class Watching(Section, frozen=True):
    """The file watcher."""

    enabled: bool = True  # whether anything is watched
    poll: bool = False  # look again and again, where the kernel does not tell (network disks)
    unleased: Literal["record", "review", "ignore"] = "record"  # what a write without a lease does
    debounce_s: Seconds = 0.2  # changes that come within this are one


class Archive(Section, frozen=True):
    """The context archive."""

    folders: list[str] = msgspec.field(default_factory=lambda: ["context_archive"])
    """The folders of the Markdown that explains the code."""
    excerpt_bytes: ClassVar[int] = 1500  # of it that go into one answer


class Http(Section, frozen=True):
    """The HTTP door; off unless asked for. Port 0 picks a free one."""

    enabled: bool = False  # open the door whenever the coordinator runs
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0  # on 127.0.0.1


class Database(Section, frozen=True):
    """Durability and retention."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"  # NORMAL: the last writes go with the power
    backup_every_s: Seconds = 21_600.0  # so often the database is copied
    backups: ClassVar[int] = 3  # copies that are kept
    keep_days: Annotated[float, Meta(gt=0)] = 30.0  # of the log; older events are cut


class Running(Section, frozen=True):
    """The coordinator's own process."""

    idle_s: Seconds = 1800.0  # ends by itself after so long without use
    log_format: Literal["text", "json"] = "text"  # of .coord/daemon.log: lines, or JSON lines


class Launching(Section, frozen=True):
    """`coord launch`."""

    ttl_s: Seconds = 600.0  # leases of launched agents; renewed by their progress
    task_timeout_s: Seconds = 3600.0  # one attempt; then it is ended
    stall_s: Seconds = 480.0  # no output and no file activity for this long: hung
    grace_s: ClassVar[float] = 10.0  # between SIGTERM and SIGKILL


class Keys(Section, frozen=True):
    """Values of keys, and changes that their owners apply. Sizes in bytes."""

    value_bytes_max: Annotated[int, Meta(ge=1, le=1024 * 1024)] = 64 * 1024  # of one value
    keys_max: ClassVar[int] = 100_000  # that have a value
    changes_of_key_max: ClassVar[int] = 1_000  # that wait to be applied
    changes_max: ClassVar[int] = 10_000  # the same, of all keys together


class Webhooks(Section, frozen=True):
    """Addresses that get events by HTTP POST, tried again until they answer 2xx."""

    urls: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Address (http or https) -> kinds of events; an empty list: what waits for a person."""
    timeout_s: ClassVar[float] = 10.0  # for an answer
    attempts_max: Count = 8  # of one delivery; then it is a dead letter


class Notifying(Section, frozen=True):
    """Telling a person on this machine what waits for one: a review, a silent agent, a message to
    people, a task that was given up. `webhooks` tell it elsewhere."""

    desktop: bool = True  # by the desktop's own notifications, if there is a desktop
    command: str = ""  # for `sh -c`; what waits comes as JSON on its standard input
    every_s: Seconds = 10.0  # the least time between two notices; news meanwhile is told together
    per_hour_max: Count = 60  # the most notices an hour


class Strategies(Section, frozen=True):
    """How resources are shared, by glob; all others are leased before work on them."""

    by_glob: dict[str, Literal["pessimistic", "optimistic", "isolated"]] = msgspec.field(
        default_factory=dict)
    """Glob of paths, or a key and what continues it -> its strategy; the last match counts."""
    losses_max: Count = 3  # writes that an agent loses in a row before it gets a lease


class Worktrees(Section, frozen=True):
    """Sessions in working trees of their own."""

    overlap: Literal["tell", "refuse", "ignore"] = "tell"
    """What follows where agents edit one file in two trees: both are told, the later one is
    refused, or nothing. What somebody has asked for is refused in all trees."""


class Signalling(Section, frozen=True):
    """Hints on tasks and resources, and how dispatch weighs them."""

    weights: dict[str, float] = msgspec.field(default_factory=dict)
    """Name of a signal -> its weight among tasks of one priority: higher bias, sooner."""
    half_life_s: Seconds = 600.0  # after this a hint is half as strong
    deposits: bool = True  # coord itself leaves hints: at a refusal, a claim, a rejected request


class Talking(Section, frozen=True):
    """Messages of agents and people."""

    keep_days: Annotated[float, Meta(gt=0, le=3650)] = 30.0  # older messages are forgotten
    per_minute_max: ClassVar[int] = 10  # of one agent
    per_hour_max: ClassVar[int] = 60  # of one agent
    unread_max: ClassVar[int] = 20  # of one sender, not yet delivered to one reader
    #: Messages of agents that answer each other, with no word of a person between.
    thread_max: ClassVar[int] = 40


class Hooks(Section, frozen=True):
    """How the agents' own hooks are answered."""

    wait_s: Annotated[float, Meta(ge=0, le=3600)] = 0.0  # hold a blocked write so long, then refuse
    keep: Literal["session", "turn"] = "session"  # how long a session without a task keeps leases
    unknown_tools: Literal["allow", "deny"] = "allow"  # tools that a profile does not know
    git_wide: Literal["deny", "allow"] = "deny"  # `git stash` and the like while others are at work
    git_wait_s: Annotated[float, Meta(ge=0, le=3600)] = 10.0  # git waits so long for a quiet moment
    adopt: bool = True  # unheld files that a command has changed are leased to its agent
    confine: bool = True  # launches and shims start agents in sessions, if they can be had


class Verifying(Section, frozen=True):
    """A command that is run on what tasks have done, in a tree apart."""

    command: str = ""  # for `sh -c`; empty: nothing is verified
    seconds_max: Seconds = 1800.0  # one run; over that it is stopped, and has failed
    after_tasks: Count = 5  # it runs after so many finished tasks
    quiet_s: Seconds = 60.0  # or after some, and so long without another


class Settings(Section, frozen=True):
    """All of it."""

    leases: Leases = Leases()
    sweep: Sweeping = Sweeping()
    backlog: Backlog = Backlog()
    review: Reviewing = Reviewing()
    look: Looking = Looking()
    watch: Watching = Watching()
    archive: Archive = Archive()
    http: Http = Http()
    database: Database = Database()
    daemon: Running = Running()
    launch: Launching = Launching()
    hooks: Hooks = Hooks()
    signals: Signalling = Signalling()
    state: Keys = Keys()
    webhooks: Webhooks = Webhooks()
    notify: Notifying = Notifying()
    strategies: Strategies = Strategies()
    worktrees: Worktrees = Worktrees()
    verify: Verifying = Verifying()
    messages: Talking = Talking()
    pools: dict[str, pool_rule.Pool] = msgspec.field(default_factory=dict)  # by their names


#: The sections with a fixed list of settings.
SECTIONS = tuple(name for name in Settings.__struct_fields__ if name != "pools")

def _below(bound: float) -> Callable[[Any], bool]:
    return lambda value: float(value) < bound


def _above(bound: float) -> Callable[[Any], bool]:
    return lambda value: float(value) > bound


def _is(what: object) -> Callable[[Any], bool]:
    return lambda value: value == what


_REVIEW, _DAY = Reviewing(), 86_400.0
#: Values that weaken protection or name a command: which, and what follows from them.
WEAKENING: dict[str, tuple[Callable[[Any], bool], str]] = {
    "leases.ttl_s": (_below(30), "leases lapse while their holders still work"),
    "leases.ttl_max_s": (_below(30), "leases lapse while their holders still work"),
    "leases.max_hold_s": (_below(60), "leases end while their holders still work"),
    "leases.window_s": (_below(5), "an edit may overwrite one that came while it was permitted"),
    "review.file_bytes_max": (_below(_REVIEW.file_bytes_max), "less partial work is kept"),
    "review.kept_bytes_max": (_below(_REVIEW.kept_bytes_max), "less partial work is kept"),
    "watch.enabled": (_is(False), "nobody sees writes that bypass coord"),
    "watch.unleased": (_is("ignore"), "writes without a lease are not recorded"),
    "watch.debounce_s": (_above(10), "writes that bypass coord are seen late"),
    "archive.folders": (lambda value: any(_leads_out(item) for item in value),
                        "agents are told what lies outside of the repository"),
    "http.enabled": (_is(True), "a port of this machine is opened"),
    "database.synchronous": (_is("NORMAL"), "what was acknowledged may be lost with the power"),
    "database.backup_every_s": (_above(7 * _DAY), "backups are rare"),
    "database.keep_days": (_below(1), "the log is soon cut"),
    "hooks.git_wide": (_is("allow"), "agents may undo each other's work with git"),
    "strategies.by_glob": (bool, "files are written without a lease on them"),
    "webhooks.urls": (bool, "events of this repository are sent to another machine"),
    "notify.command": (lambda value: bool(value.strip()),
                       "coord runs this command when something waits for you"),
    "verify.command": (lambda value: bool(value.strip()),
                       "coord runs this command on what tasks have done"),
    "hooks.confine": (_is(False), "shell commands can write what others hold"),
}


def follows(key: str, value: Any) -> str:
    """What follows from a value that `weakening` gave, under its name there."""
    return WEAKENING[key][1] if key in WEAKENING else pool_rule.find_weakness(value)


def _leads_out(folder: str) -> bool:
    return Path(folder).is_absolute() or ".." in Path(folder).parts


class Loaded(msgspec.Struct):
    """Settings, and the source of each `section.key` that is not a default."""

    settings: Settings
    sources: dict[str, str]
    untrusted: dict[str, Any] = {}
    """Values of `coord.toml` that are not used, because they weaken protection or name a command
    and are not trusted."""
    constant: list[str] = []
    """Names, as `section.key`, that were set and can no longer be set."""

    def warnings(self) -> list[str]:
        """A sentence for each value that is not used."""
        return [
            f"{FILE}: {key} = {json.dumps(value, default=str)} is not used, for nobody has "
            f"trusted it ({follows(key, value)}); the default stays. `coord trust` shows it."
            for key, value in self.untrusted.items()
        ] + [f"{key} cannot be set any more: its value is a constant. Remove it from {FILE}, or "
             "from the environment." for key in self.constant]


def _add_environment(raw: dict[str, Any], sources: dict[str, str], env: Mapping[str, str]) -> None:
    """Values of the environment take precedence over the file."""
    for section in SECTIONS:
        for key in type(getattr(Settings(), section)).__struct_fields__:
            name = f"COORD_{section}_{key}".upper()
            if name in env:
                default = getattr(getattr(Settings(), section), key)
                raw.setdefault(section, {})[key] = _plain(env[name], default)
                sources[f"{section}.{key}"] = name


def load(root: Path, env: Mapping[str, str] = os.environ) -> Loaded:
    """Read the settings in force for the repository at `root`.

    Raises:
        Refusal: INVALID, naming file, line and key.
    """
    given = env.get("COORD_CONFIG")
    path = Path(given or root / FILE)
    sources: dict[str, str] = {}
    raw = read(path)
    constant = _take_constants(raw, env)
    weak = {} if given else weakening(raw)
    if weak:  # a mistake in them is reported before anybody trusts them
        _checked(raw, {}, path)
    if weak and trusted.is_trusted(root, FILE, as_shown(weak)):
        weak = {}
    for name in weak:
        section, key = name.split(".", 1)
        del raw[section][key]
    for section, values in raw.items():
        for key in values if isinstance(values, dict) else ():
            sources[f"{section}.{key}"] = path.name
    _add_environment(raw, sources, env)
    settings = _checked(raw, sources, path)
    leases = settings.leases
    if leases.ttl_s > leases.ttl_max_s:
        raise Refusal(
            Code.INVALID, f"{path.name}: `leases.ttl_s` ({leases.ttl_s:g} s) is more than "
            f"`leases.ttl_max_s` allows ({leases.ttl_max_s:g} s): no lease could be taken.",
            next=f"Correct {path}.")
    return Loaded(settings, sources, {k: v for k, v in weak.items() if k not in sources}, constant)


def _take_constants(raw: dict[str, Any], env: Mapping[str, str]) -> list[str]:
    """Remove the names that can no longer be set from a file's values. Returns those that it or the
    environment sets."""
    constant = []
    for section in SECTIONS:
        for key in type(getattr(Settings(), section)).list_constants():
            values = raw.get(section)
            is_said = isinstance(values, dict) and values.pop(key, None) is not None
            if is_said or f"COORD_{section}_{key}".upper() in env:
                constant.append(f"{section}.{key}")
    return sorted(constant)


def _checked(raw: Mapping[str, Any], sources: Mapping[str, str], path: Path) -> Settings:
    """
    Raises:
        Refusal: INVALID, naming the file or variable, the key and what it may be.
    """
    try:
        settings = convert(raw, Settings, strict=False)
    except msgspec.ValidationError as bad:
        field, text = wrong_values.sentence(bad)
        text = text.replace("it has no field", "there is no section")
        if field.endswith("_s"):
            text = text.replace("must be a number", "must be a number of seconds")
        among = wrong_values.choices(bad, Settings)
        variable = next((source for name, source in sources.items()
                         if source.startswith("COORD_") and field.startswith(name)), "")
        raise Refusal(
            Code.INVALID, f"{variable or path.name}: {text}",
            next=f"`unset {variable}`, or give it another value." if variable else
            f"Correct {path}{_there(str(bad))}"
            + (f"; it may be {', '.join(among)}." if among else "."),
        ) from None
    for bad_value in find_impossible_values(settings.webhooks.urls, settings.signals.weights,
                                            settings.pools):
        raise Refusal(Code.INVALID, f"{path.name}: {bad_value}.", next=f"Correct {path}.")
    return settings


def _there(bad: str) -> str:
    """The existing names, if one is unknown."""
    match = re.search(r"unknown field `[^`]*`(?: - at `\$\.(\w+)`)?$", bad)
    if match is None:
        return ""
    if match[1] is None:
        return "; its sections are " + ", ".join(Settings.__struct_fields__)
    section = pool_rule.Pool if match[1] == "pools" else type(getattr(Settings(), match[1]))
    return f"; [{match[1]}] takes " + ", ".join(section.__struct_fields__)


def read(path: Path) -> dict[str, Any]:
    """The values of a settings file, not yet checked; empty if there is no file.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    try:
        text = path.read_text("utf-8-sig") if path.exists() else ""
        # The file that `coord init` writes says nothing, so it needs no parser.
        says = any(line.strip() and line.lstrip()[0] != "#" for line in text.splitlines())
        return tomllib.loads(text) if says else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise Refusal(
            Code.INVALID, f"{path} is not valid TOML: {wrong_values.in_words(bad)}.",
            next=f"Correct {path}.",
        ) from None
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{path} cannot be read: {bad.strerror}.") from None


def weakening(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Those of these values that weaken protection, by `section.key`. A value that cannot be
    compared is left to the check of types."""
    result: dict[str, Any] = {}
    for name, (weakens, _) in WEAKENING.items():
        section, key = name.split(".")
        values = raw.get(section)
        if not isinstance(values, dict) or key not in values:
            continue
        default = getattr(getattr(Settings(), section), key)
        try:
            value = convert(values[key], type(default), strict=False)
            if weakens(value):
                result[name] = value
        except (msgspec.ValidationError, TypeError, ValueError):
            continue
    pools = raw.get("pools")
    return result | {f"pools.{name}": pool for name, pool in (
        pools.items() if isinstance(pools, dict) else ()) if pool_rule.find_weakness(pool)}


def as_shown(weak: Mapping[str, Any]) -> bytes:
    """The trusted values alone, so that another change of the file needs no new trust."""
    return json.dumps(weak, sort_keys=True, default=str).encode()


def _plain(text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text.split(",") if "," in text else text
