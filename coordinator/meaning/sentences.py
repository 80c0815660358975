"""The sentences of a judgement. Each can be understood alone. Pure."""

from __future__ import annotations

from coordinator.meaning.facts import SIGNS_OF_NAMES, Facts, Site
from coordinator.meaning.values import Place


def spelt(place: Place) -> str:
    """Write a place as it appears behind `path::`."""
    return ".".join(name for name in (place.scope, place.name) if name).translate(SIGNS_OF_NAMES)


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rpartition("/")[2]


def where(facts: Facts, line: int, file: str) -> str:
    """Name the code at a line: `a() in orders.py`."""
    region = facts.region(line)
    scope = next((scope for scope in facts.scopes.values()
                  if scope.line <= line <= scope.last and scope.kind == "function"), None)
    name = region if region.startswith("<") else f"{region}()" if scope is not None else region
    return f"{name} in {file_name(file)}"


def called(site: Site) -> str:
    """Write the call of a use."""
    return f"{_written(site)}()"


def does(site: Site) -> str:
    """Describe a use in words."""
    if site.shape is None:
        return f"uses {_written(site)}"
    count = site.shape.positional
    sentences = [f"{_number(count)} argument{'s' * (count != 1)}"] if count else []
    sentences += [f"{name}=" for name in site.shape.keywords]
    if site.shape.star:
        sentences.append("*more")
    if site.shape.stars:
        sentences.append("**more")
    return f"calls {called(site)} with {', '.join(sentences) or 'no arguments'}"


def _written(site: Site) -> str:
    return site.text.rpartition(":")[2][-80:].translate(SIGNS_OF_NAMES)


def _number(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if count < len(words) else str(count)
