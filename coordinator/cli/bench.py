"""`coord bench …`: measure this machine's coordinator; every figure in benchmarks/README.md.

Parses and prints; what is measured and how is `coordinator.bench`'s business. No benchmark touches
the repository that it is started in.
"""

from __future__ import annotations

import importlib
import importlib.util
import signal
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator.bench import commands as commands_bench
from coordinator.bench import growth, guarded, hook_peers, pypi_peers
from coordinator.bench import locks as locks_bench
from coordinator.bench import meaning as meaning_bench
from coordinator.bench import one_file as one_file_bench
from coordinator.bench import regions as regions_bench
from coordinator.bench import rest as resting
from coordinator.bench import sessions as measured
from coordinator.bench import stall as stalled
from coordinator.bench import words as words_bench
from coordinator.cli import bench_sharing
from coordinator.cli.app import AsJson, app, one_of, print_json, say
from coordinator.cli.definition import Listed, typer
from coordinator.words.refusals import Code, Refusal

bench_app = typer.Typer(cls=Listed, name="bench", help="Measure coord on this machine.",
                        no_args_is_help=True)
app.add_typer(bench_app)


@bench_app.callback()
def _bench() -> None:
    # Ended from outside, a benchmark tidies up as it does at its end: its daemon would stay else.
    signal.signal(signal.SIGTERM, _ended)


def _ended(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough; what tidies up is not interrupted
    raise SystemExit(128 + number)


Folder = Annotated[
    Path | None, typer.Option("--dir", help="Where to put the databases (default: temporary).")
]
Peers = Annotated[bool, typer.Option("--peers", help="Other tools from PyPI, too.")]
InstallPeers = Annotated[
    bool, typer.Option("--install-peers", help="Fetch them first, into the user's cache.")
]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(not 1 <= n <= 10_000_000 for n in numbers):
        raise Refusal(Code.INVALID, f"{text!r} is not a list of numbers.", next="Write 1,8,64.")
    return numbers


@bench_app.command("locks")
def locks(
    clients: Annotated[str, typer.Option(help="Numbers of clients.")] = "1,8,64",
    seconds: Annotated[float, typer.Option(help="For each contender and number.")] = 3.0,
    existing: Annotated[
        bool, typer.Option("--existing", help="Lease files that exist: their bytes are kept.")
    ] = False,
    only_ours: Annotated[bool, typer.Option("--only-ours", help="Nobody else.")] = False,
    profile: Annotated[
        Path | None, typer.Option(help="Run the daemon under cProfile; figures go there.")
    ] = None,
    peers: Peers = False,
    install_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Durable acquire + release pairs, beside SQLite, Redis and the disk's floor."""
    if install_peers:
        pypi_peers.install()
    report = locks_bench.run(_numbers(clients), seconds, folder, existing, profile, only_ours,
                             peers or install_peers)
    if as_json:
        print_json(report)
        return
    say("Pairs of acquire + release, every request on disk before it is answered.")
    say(f"{'':28} {'clients':>7} {'pairs/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'coord is':>9}")
    for one in report.figures:
        ours = "" if one.contender == locks_bench.OURS else f"{one.ratio:8.2f}x"
        say(f"{one.contender:28} {one.clients:7} {one.rate:9.0f} {one.p50_ms:8.3f} "
            f"{one.p99_ms:8.3f} {ours:>9}")
    for count, ratio in report.p50_over_floor.items():
        say(f"{count} clients: the median durable request takes {ratio:.2f} bare fdatasyncs.")
    for why in report.missing:
        say(f"missing: {why}")


@bench_app.command("hook")
def hook(
    runs: Annotated[int, typer.Option(min=5, help="Writes.")] = 60,
    peers: Peers = False,
    install_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """One guarded write, from the hook's start to its end, beside a bare interpreter's."""
    if install_peers:
        hook_peers.install()
    report = guarded.run(runs, folder, peers=peers or install_peers)
    if as_json:
        print_json(report)
        return
    say(f"A guarded write takes {report.ratio:.2f} times as long as `python -I -S -c pass`")
    say(f"({report.ratio_held:.2f} when the lease is held already, {report.ratio_region:.2f} for "
        "one function of 2,000 lines);")
    say(f"medians of {report.runs}: "
        f"{report.hook_p50_ms:.1f} ms, p99 {report.hook_p99_ms:.1f} ms, "
        f"bare {report.nothing_p50_ms:.1f} ms.")
    for name, ratio in report.peers.items():
        say(f"the hook of {name} takes {ratio:.1f} times as long as ours")
    for why in report.missing:
        say(f"missing: {why}")


@bench_app.command("session")
def session(
    sessions: Annotated[str, typer.Option(help="Sessions that a grant has to reach.")] = "1,10,50",
    runs: Annotated[int, typer.Option(min=5, help="Commands, starts and grants.")] = 40,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What an agent's session adds to its commands, to its start, and to grants."""
    report = measured.run(_numbers(sessions), runs, folder)
    if as_json:
        print_json(report)
        return
    say(f"a command takes {report.command_ratio:.2f} times as long in a session "
        f"({report.command_ms:.1f} ms, bare {report.command_bare_ms:.1f} ms)")
    say(f"one that joins its agent's session takes {report.joined_ms:.1f} ms")
    say(f"a start takes {report.start_ms:.1f} ms, bare {report.start_bare_ms:.1f} ms")
    for one in report.grants:
        say(f"{one.sessions:4} sessions: a grant takes {one.lock_ms:.1f} ms, of that for them "
            f"{one.lock_added_ms:.1f}; its end {one.unlock_ms:.1f}, {one.unlock_added_ms:.1f}")


@bench_app.command("dispatch")
def dispatch(
    tasks: Annotated[str, typer.Option(help="Sizes of the backlog.")] = "100,1000,10000,100000",
    held: Annotated[str, typer.Option(help="Leases held on the best tasks' paths.")] = "0,100,1000",
    signals: Annotated[
        bool, typer.Option("--signals", help="With hints on the next tasks, and weights for them.")
    ] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Choosing, claiming and completing a task, as backlog and leases grow."""
    counts = [0 if part.strip() == "0" else _numbers(part)[0] for part in held.split(",")]
    grown = growth.dispatch(_numbers(tasks), counts, folder=folder, signals=signals)
    _grown(grown, "tasks", as_json)


@bench_app.command("overlap")
def overlap(
    leases: Annotated[str, typer.Option(help="Live leases.")] = "1000,10000,100000,1000000",
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """The check for conflicts, as live leases grow."""
    _grown(growth.overlap(_numbers(leases), folder=folder), "leases", as_json)


def _grown(report: growth.Growth, what: str, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    say("In process, on a real SQLite file with synchronous=OFF: this measures the decision.")
    say(f"{what:>9} {'held':>9} {'median us':>10} {'first us':>10}")
    for point in report.points:
        say(f"{point.size:9} {point.held:9} {point.cost_us:10.1f} {point.first_us:10.1f}")
    for name, slope in report.exponents.items():
        say(f"growth exponent, {name}: {slope:.3f}")


@bench_app.command("stall")
def stall(
    acts: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(stalled.names())}.")
    ] = None,
    scale: Annotated[
        float, typer.Option(min=0.001, max=10.0, help="Of the sizes (1: as documented).")
    ] = 1.0,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What a neighbour's lock + unlock feels while others lease, revert and compact much."""
    for one in acts or []:
        one_of(one, stalled.names(), f"{one!r} is not measured. These are")
    whole = stalled.Sizes()
    sizes = stalled.Sizes(*(max(1, round(size * scale)) for size in msgspec.structs.astuple(whole)))
    figures = stalled.run(sizes, acts or [], folder)
    if as_json:
        print_json({"items": figures, "next": None})
        return
    say("A neighbour's lock + unlock while another client asks for this, and at rest.")
    say(f"{'':8} {'took s':>8} {'pairs':>7} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8} "
        f"{'rest p99':>9} {'ratio':>6}")
    for felt in figures:
        say(f"{felt.act:8} {felt.took_s:8.2f} {felt.pairs:7} {felt.p50_ms:8.2f} "
            f"{felt.p99_ms:8.2f} {felt.most_ms:8.1f} {felt.rest_p99_ms:9.2f} {felt.ratio:6.2f}"
            + ("" if felt.outcome == "done" else f"  ({felt.outcome})"))


@bench_app.command("regions")
def regions(
    lines: Annotated[int, typer.Option(min=20, max=100_000, help="Of the file.")] = 2000,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Turns of each.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Finding a file's regions, over the bare parse of its bytes."""
    report = regions_bench.run(lines, rounds)
    if as_json:
        print_json(report)
        return
    say(f"A Python file of {report.lines:,} lines with {report.regions} regions.")
    say(f"{'':34} {'ms':>8} {'over the parse':>15}")
    for what, took, ratio in (
        ("bare parse", report.parse_ms, 1.0),
        ("parse, query and division", report.outline_ms, report.outline_ratio),
        ("the same, asked of the worker", report.asked_ms, report.asked_ratio),
    ):
        say(f"{what:34} {took:8.2f} {ratio:14.2f}x")
    say(f"{'the first question, with its start':34} {report.started_ms:8.2f}")


@bench_app.command("one-file")
def one_file(
    agents: Annotated[int, typer.Option(min=2, max=100, help="Agents at once.")] = 10,
    think: Annotated[float, typer.Option(min=0.01, help="Each thinks about so long (s).")] = 5.0,
    lines: Annotated[int, typer.Option(min=20, max=100_000, help="Of the file that is committed "
                                       "to.")] = 2000,
    rounds: Annotated[int, typer.Option(min=3, max=1000, help="Commits.")] = 30,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Agents that share one file, by region and as a whole; and what one commit costs."""
    report = one_file_bench.run(agents, think, lines, rounds, folder)
    if as_json:
        print_json(report)
        return
    say(f"{report.agents} agents, each at a function of its own in one file; {report.lost} edits "
        f"lost.")
    say(f"by region {report.by_region_s:.2f} s, {report.by_region_s / report.longest_s:.2f} times "
        f"the longest agent; {report.refused} refusals")
    say(f"by file   {report.by_file_s:.2f} s, {report.by_file_s / report.by_region_s:.1f} times "
        "as long")
    say(f"one commit in {report.lines:,} lines takes {report.commit_ms:.1f} ms, "
        f"{report.commit_ratio:.2f} times a bare parse and an fsync of the file")


@bench_app.command("meaning")
def meaning(
    files: Annotated[str, typer.Option(help="Sizes of repositories.")] = "100,1000,10000",
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Updates of each.")] = 25,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """The index of what files define and use: its first reading, an update, a judgement."""
    report = meaning_bench.run(_numbers(files), rounds, folder)
    if as_json:
        print_json(report)
        return
    say(f"{'files':>7} {'first reading s':>16} {'update ms':>10} {'judgement ms':>13} "
        f"{'breaks':>7} {'index bytes/file':>17} {'peak MB':>8}")
    for one in report.sizes:
        say(f"{one.files:7,} {one.first_s:16.2f} {one.update_ms:10.2f} {one.judge_ms:13.2f} "
            f"{one.breaks:7} {one.index_bytes:17,} {one.peak_mb:8.1f}")
    say(f"growth exponents: update {report.update_exponent:.2f}, "
        f"judgement {report.judge_exponent:.2f}")


@bench_app.command("rest")
def rest(
    seconds: Annotated[float, typer.Option(min=1, help="How long to watch it.")] = 20.0,
    files: Annotated[int, typer.Option(help="Files in its repository.")] = 2000,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Memory and CPU of a daemon that nobody asks anything."""
    report = resting.run(seconds, files, folder)
    if as_json:
        print_json(report)
        return
    say(f"At rest for {report.seconds:.0f} s over {report.files_watched} files: "
        f"{report.resident_mb:.1f} MB resident, {report.core_share * 100:.2f} % of a core, "
        f"{report.wakeups_per_s:.1f} wake-ups a second.")


@bench_app.command("cli")
def cli(
    rounds: Annotated[int, typer.Option(min=3, max=1000, help="Times each command.")] = 15,
    agents: Annotated[int, typer.Option(min=1, max=200, help="Of the fleet.")] = 30,
    think: Annotated[float, typer.Option(min=0.1, help="Each thinks so long (s).")] = 5.0,
    tasks: Annotated[int, typer.Option(min=1, help="Of all of them.")] = 120,
    install_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What commands cost, in bare interpreters; and a fleet that types them."""
    if install_peers:
        pypi_peers.install()
    report = commands_bench.run(rounds, agents, think, tasks, folder)
    if as_json:
        print_json(report)
        return
    say(f"A bare interpreter takes {report.bare_ms:.1f} ms. A command takes so many of them:")
    for one in report.costs:
        say(f"{one.command:36} {one.by:34} {one.ratio:7.2f} {one.ms:8.1f} ms")
    for why in report.missing:
        say(f"missing: {why}")
    say(f"{report.agents} agents that think and type: {report.wall_s:.1f} s, of which they think "
        f"{report.ideal_s:.1f} s ({report.wall_s / report.ideal_s:.2f} times)")


@bench_app.command("words")
def words(
    texts: Annotated[bool, typer.Option("--texts", help="The texts, too.")] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What a model pays to read coord's answers, in tokens."""
    try:
        counted = words_bench.run(folder)
    except ImportError:
        raise Refusal(
            Code.INVALID, "Counting tokens needs the tokenizer `bpe-openai`.",
            next="python -m pip install bpe-openai",
        ) from None
    if as_json:
        print_json(counted)
        return
    for one in counted:
        say(f"{one.what:28} {one.tokens:6} tokens {one.characters:7} characters   {one.command}")
        if texts:
            for line in one.text.splitlines():
                say(f"    {line}")


bench_app.command("billing")(bench_sharing.billing)
bench_app.command("state")(bench_sharing.state)
bench_app.command("strategies")(bench_sharing.strategies)

if importlib.util.find_spec("coordinator.cli.bench_replay"):
    _replay = importlib.import_module("coordinator.cli.bench_replay")
    bench_app.command("replay")(_replay.replay_command)
