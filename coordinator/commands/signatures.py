"""Declaring a command by the annotated signature of the function that carries it out.

`Annotated[str, Argument(…)]` is an argument and `Annotated[bool, Option(…)]` an option. `@command`
registers the function under the words that a person types. Parsers, help, completion and documents
are all made from this one declaration. A signature is read when it is first needed. The module
knows no parser and no terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

F = TypeVar("F", bound=Callable[..., Any])
#: The flag of a generator function (CPython's `inspect.CO_GENERATOR`).
_GENERATOR = 0x20


class Argument(msgspec.Struct, frozen=True):
    """Marks a parameter as an argument.

    Attributes:
        help: what it is.
        metavar: how help names it; empty: as the parameter.
        reads_input: `-` stands for the text of standard input.
    """

    help: str = ""
    metavar: str = ""
    reads_input: bool = False


class Option:
    """Marks a parameter as an option: see `Parameter` for what its attributes mean."""

    def __init__(
        self, help: str = "", *names: str, metavar: str = "",  # noqa: A002 - as all parsers say it
        hidden: bool = False, least: int | None = None, most: int | None = None,
        needs_program: bool = False,
    ) -> None:
        """`names`: `-s`, beside the long name that is made from the parameter; `--long`, or
        `--yes/--no`, in place of that."""
        self.names, self.help, self.metavar, self.hidden = names, help, metavar, hidden
        self.least, self.most, self.needs_program = least, most, needs_program


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a command.

    Attributes:
        name: as the function calls it.
        type: of one value: `str`, `int`, `float`, `bool` (a flag), or what makes it of a text.
        choices: the words that it may be; empty: any.
        many: whether the function is given a list.
        required: whether it has to be typed.
        default: what it is where it is not typed.
        names: how an option is typed; empty: it is an argument.
        opposites: how a flag is typed that is not to be set.
        help: what it is.
        metavar: how help names its value; empty: by its type.
        hidden: whether help leaves it out.
        least: a number is not lower.
        most: a number is not higher.
        needs_program: only the program can carry out a command with this option.
        reads_input: `-` stands for the text of standard input.
    """

    name: str
    type: Any = str
    choices: tuple[str, ...] = ()
    many: bool = False
    required: bool = False
    default: Any = None
    names: tuple[str, ...] = ()
    opposites: tuple[str, ...] = ()
    help: str = ""
    metavar: str = ""
    hidden: bool = False
    least: int | None = None
    most: int | None = None
    needs_program: bool = False
    reads_input: bool = False

    @property
    def is_flag(self) -> bool:
        """Whether it is typed without a value."""
        return self.type is bool

    @property
    def kind(self) -> str:
        """The kind of the parameter."""
        return "option" if self.names else "argument"

    @property
    def bounds(self) -> str:
        """The allowed numbers; empty: all."""
        if self.least is not None and self.most is None:
            return f"x>={self.least}"
        least = "" if self.least is None else f"{self.least}<="
        return "" if self.most is None else f"{least}x<={self.most}"

    @property
    def quoted(self) -> str:
        """The parameter's name in a sentence."""
        return " / ".join(map(repr, self.names)) or repr(self.metavar or self.name)


class Command:
    """A declared command.

    Attributes:
        name: the words that it is typed with.
        function: carries it out: a generator of requests (`shell.Asking`), which the coordinator
            can run, too; or a plain function of the program.
        in_program: the program's own way to carry out a generator; None: it has none.
        hidden: whether lists leave it out.
        passes_on: whether options that are not its own go on to another program.
        takes_all: whether it is given all words that follow it, as they are.
        needs_program: whether only the program can carry it out.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, hidden: bool, passes_on: bool,
                 takes_all: bool, needs_program: bool) -> None:
        self.name, self.function, self.hidden = name, function, hidden
        self.asks = bool(function.__code__.co_flags & _GENERATOR)
        self.passes_on, self.takes_all = passes_on, takes_all
        self.needs_program = needs_program or not self.asks
        self.in_program: Callable[..., Any] | None = None
        self._parameters: tuple[Parameter, ...] | None = None
        self._options: dict[str, Parameter] | None = None

    @property
    def help(self) -> str:
        """The help of the command."""
        return self.function.__doc__ or ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the command, in the order of its signature."""
        if self._parameters is None:
            self._parameters = tuple(read_parameters(self.function, skip=int(self.asks)))
        return self._parameters

    @property
    def arguments(self) -> list[Parameter]:
        """The parameters that are recognised by their places."""
        return [parameter for parameter in self.parameters if not parameter.names]

    @property
    def options(self) -> dict[str, Parameter]:
        """The others, by each of their names."""
        if self._options is None:
            self._options = {name: parameter for parameter in self.parameters
                             for name in (*parameter.names, *parameter.opposites)}
        return self._options


class Group(msgspec.Struct, frozen=True):
    """Words that commands follow; one may be a command, too.

    Attributes:
        name: the words.
        help: what its commands are for.
        order: of its commands, as far as it is not the one in which they are declared.
        epilog: the text below the help.
    """

    name: str
    help: str
    order: tuple[str, ...] = ()
    epilog: str = ""


#: The commands of the modules that were read in so far, by their words.
COMMANDS: dict[str, Command] = {}
GROUPS: dict[str, Group] = {}


def command(name: str, *, hidden: bool = False, passes_on: bool = False,
            takes_all: bool = False, needs_program: bool = False) -> Callable[[F], F]:
    """Declare a command; its function stays as it is."""
    def note(function: F) -> F:
        COMMANDS[name] = Command(name, function, hidden=hidden, passes_on=passes_on,
                                 takes_all=takes_all, needs_program=needs_program)
        return function

    return note


def in_program(name: str) -> Callable[[F], F]:
    """Have the program carry out this command by a function of its own."""
    def note(function: F) -> F:
        COMMANDS[name].in_program = function
        return function

    return note


def declare_group(name: str, help: str, order: str = "", epilog: str = "") -> None:  # noqa: A002
    """Declare words that commands follow. `order`: these, with blanks between."""
    GROUPS[name] = Group(name, help, tuple(order.split()), epilog)


def list_members(group: str) -> list[str]:
    """The words that may follow those of a group, in their order."""
    begin = f"{group} ".lstrip()
    names = dict.fromkeys(
        name[len(begin):].partition(" ")[0] for name in (*COMMANDS, *GROUPS)
        if name.startswith(begin) and name != group
    )
    names.pop("", None)
    order = GROUPS[group].order
    return [*(name for name in order if name in names),
            *(name for name in names if name not in order)]


def find_command(words: list[str]) -> str:
    """The command or group that a line begins with; empty: none."""
    name = ""
    for word in words:
        longer = f"{name} {word}".strip()
        if longer not in COMMANDS and longer not in GROUPS:
            break
        name = longer
    return name


def read_parameters(function: Callable[..., Any], skip: int) -> Iterator[Parameter]:
    """The parameters that a signature declares, without the first `skip`."""
    code, by_place = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    first_default = code.co_argcount - len(by_place)
    defaults = dict(zip(names[first_default:code.co_argcount], by_place, strict=True))
    defaults.update(function.__kwdefaults__ or {})
    hints = get_type_hints(function, include_extras=True)
    for name in names[skip:]:
        yield _read_parameter(name, hints[name], name not in defaults, defaults.get(name))


def _read_parameter(name: str, hint: Any, required: bool, default: Any) -> Parameter:
    marker: Argument | Option = Argument() if required else Option()
    if get_origin(hint) is Annotated:
        hint, marker = get_args(hint)
    hint = _without_none(hint)
    many = get_origin(hint) is list
    if many:
        (hint,) = get_args(hint)
    choices: tuple[str, ...] = ()
    if get_origin(hint) is Literal:
        hint, choices = str, get_args(hint)
    common: dict[str, Any] = {
        "name": name, "type": hint, "choices": choices, "many": many, "required": required,
        "default": default, "help": marker.help, "metavar": marker.metavar,
    }
    if isinstance(marker, Argument):
        return Parameter(**common, reads_input=marker.reads_input)
    names = marker.names
    if not any(typed.startswith("--") for typed in names):
        names = (_name_option(name, negated=hint is bool and default is True), *names)
    names, opposites = _split_names(names)
    return Parameter(**common, names=names, opposites=opposites, hidden=marker.hidden,
                     least=marker.least, most=marker.most, needs_program=marker.needs_program)


def _without_none(hint: Any) -> Any:
    """`T` of `T | None`."""
    members = get_args(hint)
    if NoneType not in members:
        return hint
    (member,) = [member for member in members if member is not NoneType]
    return member


def _name_option(name: str, *, negated: bool) -> str:
    long = name.strip("_").replace("_", "-")
    return f"--{long}/--no-{long}" if negated else f"--{long}"


def _split_names(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [name.partition("/") for name in names]
    return tuple(yes for yes, _, _ in pairs), tuple(no for _, _, no in pairs if no)


# ------------------------------------------------------------ what many commands have

AsJson = Annotated[bool, Option("Print the API's own reply.", "--json")]
Short = Annotated[bool, Option("JSON in one line, of what a caller acts on.")]
Quiet = Annotated[bool, Option("Print the names only, one a line.", "-q")]
Limit = Annotated[int, Option("At most so many.", "-n")]
AgentName = Annotated[
    str | None, Option("Whom you act for (default: $COORD_AGENT).", "-a")
]
