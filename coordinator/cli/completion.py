"""`coord completion` prints a shell's completion script, `coord __complete` serves that script.

`coordinator/commands/completion.py` finds the candidates. A running coordinator runs it by itself.
If none runs, `complete` here runs it: a key press starts no coordinator, so the shell then offers
commands and options, and no names of tasks or agents. `coord help` prints help.
"""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import here, one_of, print_json, say, tell, width
from coordinator.commands import completion as bodies
from coordinator.commands.lists import wrapped
from coordinator.commands.signatures import Argument, AsJson, command, in_program
from coordinator.words.refusals import MEANING, Code, Exit, Refusal, codes

BASH = """\
# bash completion for coord. Load it now:  source <(coord completion bash)
# or for good:  coord completion bash > ~/.local/share/bash-completion/completions/coord
_coord() {
    local typed=${COMP_LINE:0:COMP_POINT} begun line value
    local current=${COMP_WORDS[COMP_CWORD]}
    [[ $current == [:=] ]] && current=
    begun=${typed##*[[:space:]]}
    local -a words
    read -r -a words <<< "${typed%"$begun"}"
    local before=${begun%"$current"}   # bash takes a colon for the end of a word
    COMPREPLY=()
    while IFS= read -r line; do
        value=${line%%$'\\t'*}
        COMPREPLY+=("${value#"$before"}")
    done < <(coord __complete "${words[@]:1}" "$begun" 2>/dev/null)
}
complete -o bashdefault -o default -F _coord coord
"""
ZSH = """\
#compdef coord
# zsh completion for coord. Load it now:  source <(coord completion zsh)
# or for good:  coord completion zsh > "${fpath[1]}/_coord"
_coord() {
    local -a found
    local value about
    while IFS=$'\\t' read -r value about; do
        found+=("${value//:/\\\\:}${about:+:$about}")
    done < <(coord __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe coord found; else _files; fi
}
if [[ $funcstack[1] == _coord ]]; then _coord "$@"; else compdef _coord coord; fi
"""
FISH = """\
# fish completion for coord. Load it now:  coord completion fish | source
# or for good:  coord completion fish > ~/.config/fish/completions/coord.fish
function __coord_complete
    set -l words (commandline -opc)[2..-1]
    set -l found (coord __complete $words (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c coord -f -a '(__coord_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@command("completion")
def completion(
    shell: Annotated[str, Argument("bash, zsh, fish.")] = "bash",
) -> None:
    """Print what lets your shell complete commands, ids, agents and keys, and how to load it."""
    say(SCRIPTS[one_of(shell, SCRIPTS, f"There is no completion for {shell!r}")].rstrip("\n"))


@in_program("__complete")
def complete(words: list[str]) -> None:
    """Print the possible next words for the shell, without asking a coordinator."""
    shell = here()
    steps = bodies.complete(shell, words=words)
    try:
        next(steps)
        while True:  # each step asks for names: a refusal makes it offer none
            steps.throw(Refusal(Code.DAEMON_DOWN, "Nobody is asked."))
    except StopIteration:
        pass
    tell(shell)


@command("help")
def help_(
    topic: Annotated[
        list[str] | None, Argument("A command, or `exit-codes`; default: all commands.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """The help of a command; `exit-codes`: the codes that commands end with."""
    topic = topic or (["exit-codes"] if as_json else [])
    if topic != ["exit-codes"]:
        if as_json:
            raise Refusal(Code.INVALID, "The help of a command is text; `--json` goes with "
                          "`exit-codes`.", next=f"coord {' '.join(topic)} --help")
        from coordinator.cli.main import main  # main imports this module

        return main([*topic, "--help"])
    if as_json:
        print_json({"items": [{"exit": number.value, "name": number.name,
                               "meaning": MEANING[number], "codes": codes(number)}
                              for number in Exit], "next": None})
        return Exit.OK
    for number in Exit:
        say(f"{number.value:>3}  {number.name}")
        for text in filter(None, (MEANING[number], ", ".join(codes(number)))):
            for line in wrapped(text, width(), 5):
                say(line)
    return Exit.OK
