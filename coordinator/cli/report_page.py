"""`coord report --html`: the report as one page that needs no network and no script.

Owns how it looks; every name and word in it is escaped, for agents and files chose them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coordinator.commands.lists import in_line, span
from coordinator.words import requests as rq
from coordinator.words.texts import counted

STYLE = """
:root { color-scheme: light dark; --bar: #4a7fb5; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.name { overflow-wrap: anywhere; font-family: ui-monospace, monospace; font-size: .9em }
td.bar { width: 35% } .bar i { display: block; height: .8rem; background: var(--bar) }
p.facts b { font-size: 1.3rem } p.facts span { margin-right: 2rem; display: inline-block }
"""


def page(title: str, told: rq.ReportReply) -> str:
    """The whole page, UTF-8."""
    facts = [
        (span(told.span_s), "in all"), (span(told.stood_s), "lost to waiting"),
        (span(told.waited_s), "waited in all"), (str(told.tasks.get("done", 0)), "tasks done"),
        (str(sum(one.count for one in told.refusals)), "refusals"),
    ]
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p>{_text(told.since or 'nothing yet')} to {_text(told.until)}, "
        f"{counted(told.events, 'event')}.</p>",
        '<p class="facts">' + "".join(
            f"<span><b>{_text(value)}</b> {_text(name)}</span>" for value, name in facts) + "</p>",
        _table("Who waited for whom", ("agent", "for", "times", "stood still", "waited in all"),
               [((one.agent, one.holder), (str(one.times), span(one.stood_s), span(one.waited_s)),
                 one.waited_s) for one in told.waited]),
        _table("Files in demand",
               ("resource", "agents", "leased", "refused", "held", "waited for"),
               [((one.resource,), (str(one.agents), str(one.grants), str(one.refused),
                                   span(one.held_s), span(one.waited_s)),
                 one.waited_s or float(one.refused)) for one in told.files]),
        _table("Refusals", ("code", "times"),
               [((one.code,), (str(one.count),), float(one.count)) for one in told.refusals]),
        _table("Agents", ("agent", "done", "failed", "in review", "refused", "waited", "held"),
               [((one.agent,), (str(one.done), str(one.failed), str(one.in_review),
                                str(one.refused), span(one.waited_s), span(one.held_s)),
                 float(one.done))
                for one in told.agents]),
    ]
    return ("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<meta name=\"viewport\" content=\"width=device-width\">"
            f"<title>{_text(title)}</title><style>{STYLE}</style></head>\n<body>\n"
            + "\n".join(parts) + "\n</body></html>\n")


def _table(title: str, heads: Sequence[str],
           rows: Sequence[tuple[Sequence[str], Sequence[str], float]]) -> str:
    """A table; each row: names, numbers, and what its bar stands for."""
    if not rows:
        return f"<h2>{_text(title)}</h2>\n<p>Nothing.</p>"
    most = max(size for _, _, size in rows) or 1.0
    names = len(rows[0][0])
    head = "".join(f'<th{" class=n" if at >= names else ""}>{_text(one)}</th>'
                   for at, one in enumerate(heads))
    body = "\n".join(
        "<tr>" + "".join(f'<td class="name">{_text(one)}</td>' for one in shown)
        + "".join(f'<td class="n">{_text(one)}</td>' for one in numbers)
        + f'<td class="bar"><i style="width:{100 * size / most:.1f}%"></i></td></tr>'
        for shown, numbers, size in rows)
    return (f"<h2>{_text(title)}</h2>\n<table><thead><tr>{head}<th></th></tr></thead>\n"
            f"<tbody>\n{body}\n</tbody></table>")


def _text(words: str) -> str:
    return escape(in_line(words))
