"""Choosing the sections that explain the refused resources, and how much of each is quoted.

The module decides the choice and its order. It reads shelves and no files. The same index and the
same question always give the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coordinator.archive.excerpt_budget import clean, cut, shares, size
from coordinator.archive.resource_terms import Rank, ResourceTerms, asked, matches, reason, tokens
from coordinator.archive.section_store import SectionStore, Tie

#: The bytes of budget for each further excerpt, up to the most that a reader will follow.
EXCERPT_BYTES_MIN = 240
EXCERPTS_MAX = 5

_WORD = re.compile(r"[^\W_]{3,}")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Part of a section that explains a contended resource, and why it was chosen."""

    number: str
    title: str
    source: str
    text: str
    why: str


@dataclass(slots=True)
class _Candidate:
    """A section that is tied to at least one of the resources, by its strongest kind of tie."""

    store: int
    row: int
    rank: Rank
    term: str
    asks: set[int]  # the resources that it is so tied to


def choose(
    shelves: Sequence[SectionStore], resources: Sequence[str], budget_bytes: int, words: str
) -> list[Excerpt]:
    """Excerpts for `resources`, strongest tie first; see `ArchiveIndex.excerpts`."""
    asks = [asked(clean(resource)) for resource in resources]
    count = max(1, min(EXCERPTS_MAX, budget_bytes // EXCERPT_BYTES_MIN))
    own = list(dict.fromkeys(word for ask in asks for word in ask.words))
    helpful = {word.casefold() for text in (*own, words) for word in _WORD.findall(text)}
    chosen: list[_Candidate] = []
    seen: set[tuple[int, int]] = set()
    for rank in Rank:
        # Strongest ties first, and no further than needed: a file that is named a hundred times
        # must not cost a hundred reads when two sections fill the budget.
        if rank is Rank.WORDS:
            chosen = chosen or _worded(shelves, own, count)
            break
        tied = [c for c in _tied(shelves, asks, rank) if (c.store, c.row) not in seen]
        seen.update((c.store, c.row) for c in tied)
        chosen += _ordered(shelves, tied, helpful)
        if len(chosen) >= count:
            break
    return _quoted(shelves, chosen[:count], budget_bytes, own)


#: Term -> the positions of the resources that it is so tied to.
_Reach = dict[str, list[int]]


def _tied(
    shelves: Sequence[SectionStore], asks: Sequence[ResourceTerms], rank: Rank
) -> list[_Candidate]:
    """Every section with a tie of this rank to one of the resources."""
    covers = _invert([ask.covers for ask in asks], rank)
    mentions = _invert([ask.mentions for ask in asks], rank)
    candidates: dict[tuple[int, int], _Candidate] = {}
    for number, store in enumerate(shelves):
        for term, row, reach in _list_ties(store, asks, rank, covers, mentions):
            candidate = candidates.get((number, row))
            if candidate is None:
                candidates[number, row] = _Candidate(number, row, rank, term, set(reach))
                continue
            candidate.asks.update(reach)
            # Of equal ties the longest term says most; then by name, to be the same each time.
            candidate.term = min(candidate.term, term, key=lambda t: (-len(t), t))
    return list(candidates.values())


def _invert(terms: Sequence[dict[str, Rank]], rank: Rank) -> _Reach:
    """Each term of this rank, with the resources that have it."""
    reach: _Reach = {}
    for n, ranks in enumerate(terms):
        for term, strength in ranks.items():
            if strength is rank:
                reach.setdefault(term, []).append(n)
    return reach


def _list_ties(
    store: SectionStore, asks: Sequence[ResourceTerms], rank: Rank, covers: _Reach,
    mentions: _Reach,
) -> Iterator[tuple[str, int, list[int]]]:
    """A store's sections of this rank: the term, the section's row, the resources."""
    if covers or mentions:
        for kind, term, row in store.tied(covers, mentions):
            yield term, row, (covers if kind is Tie.COVER else mentions)[term]
    if rank is Rank.COVER and (reached := _match_globs(store, asks)):
        yield from ((term, row, reached[term]) for term, row in store.globbed(reached))
    if rank is Rank.DIRECTORY:
        for n, ask in enumerate(asks):
            inside = store.within(ask.within) if ask.within else ()
            yield from ((term, row, [n]) for term, row in inside if ask.contains(term))


def _match_globs(store: SectionStore, asks: Sequence[ResourceTerms]) -> _Reach:
    """A store's globs that match any of the resources, with these."""
    return {
        pattern: reach
        for pattern in store.patterns()
        if (reach := [n for n, ask in enumerate(asks) if matches(pattern, ask)])
    }


def _ordered(
    shelves: Sequence[SectionStore], equals: list[_Candidate], words: set[str]
) -> list[_Candidate]:
    """Sections of equal ties: by how many resources they explain, then by their titles."""
    places = [
        store.places(c.row for c in equals if c.store == n) for n, store in enumerate(shelves)
    ]

    def order(c: _Candidate) -> tuple[int, int, int, str, int]:
        place = places[c.store][c.row]
        shared = words.intersection(_WORD.findall(place.about.casefold()))
        return -len(c.asks), -len(shared), c.store, place.source, place.place

    return sorted(equals, key=order)


def _worded(shelves: Sequence[SectionStore], words: Sequence[str], count: int) -> list[_Candidate]:
    """Sections with the words of the resources' names, used if no section is tied."""
    match = " OR ".join(tokens(" ".join(words)))
    spoken = " ".join(words)
    return [
        _Candidate(n, row, Rank.WORDS, spoken, set())
        for n, store in enumerate(shelves)
        for row in (store.worded(match, count) if match else ())
    ]


def _quoted(
    shelves: Sequence[SectionStore],
    chosen: Sequence[_Candidate],
    budget_bytes: int,
    own: Sequence[str],
) -> list[Excerpt]:
    sections = [shelves[c.store].load([c.row])[c.row] for c in chosen]
    given = shares([size(s.body) for s in sections], budget_bytes)
    return [
        Excerpt(section.number, section.title, section.source, text, reason(c.rank, c.term))
        for c, section, share in zip(chosen, sections, given, strict=True)
        if (text := cut(section.body, share, own if c.rank is Rank.WORDS else (c.term,)))
    ]
