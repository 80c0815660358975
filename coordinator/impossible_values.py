"""Values of `coord.toml` that have the right type and are impossible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from coordinator.rules import pools as pool_rule


def find_impossible_values(urls: Mapping[str, Iterable[str]], weights: Mapping[str, float],
                           pools: Mapping[str, pool_rule.Pool]) -> Iterator[str]:
    """A sentence for each impossible value.

    Args:
        urls: `webhooks.urls`: for each address, the kinds of events that are sent there.
        weights: `signals.weights`.
        pools: the pools, by their names.
    """
    for url, kinds in urls.items():
        yield from _check_address(url)
        yield from _check_kinds(url, kinds)
    for name, weight in weights.items():
        if not isfinite(weight):
            yield f"the weight of {name!r} in `signals.weights` is no finite number"
    yield from pool_rule.find_mistakes(pools)


def _check_address(url: str) -> Iterator[str]:
    from urllib.parse import urlsplit  # few settings name an address: the start need not load it

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        yield f"`webhooks.urls` names {url!r}, which is no address (https://…)"
    elif not url.isascii() or not url.isprintable() or " " in url:
        yield (f"`webhooks.urls` names {url!r}, with characters that an address cannot have "
               "(a space is written %20)")
    elif not parts.hostname:
        yield f"`webhooks.urls` names {url!r}, which is no address (https://…)"


def _check_kinds(url: str, kinds: Iterable[str]) -> Iterator[str]:
    for kind in kinds:
        # Few settings name a kind: the start need not load all events.
        from difflib import get_close_matches

        from coordinator.store.events import SENTENCES

        if kind not in SENTENCES:
            near = get_close_matches(kind, SENTENCES, 3, 0.5)
            yield (f"`webhooks.urls` names {kind!r} for {url}, which is no kind of event"
                   + (f" (the nearest: {', '.join(near)})" if near else ""))
