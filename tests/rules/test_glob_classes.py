"""Classes of a glob, each short body there is, held against a plain reading; and limits, to a sign."""

from __future__ import annotations

import itertools

import pytest

from coordinator.rules.globs import (
    PATTERN_CHARS_MAX,
    PATTERN_PARTS_MAX,
    check,
    intersect,
    matches,
    overlaps,
    reaches,
)
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import resource

#: What bodies are made of, and what they are tried on: the neighbours of each sign, those of the
#: slash, and both ends of all signs.
SIGNS = "!^-]\\ac"
TRIED = sorted({chr(ord(sign) + by) for sign in SIGNS for by in (-1, 0, 1)} | set("./0bdz\0\U0010ffff"))


def read(body: str) -> tuple[set[str], str] | None:
    """(the signs it has, what follows the class); None if it is never closed."""
    at, negated = 0, body[:1] in ("!", "^")
    at += negated
    taken: list[tuple[str, bool]] = []
    while at < len(body) and (body[at] != "]" or not taken):
        quoted = body[at] == "\\"
        if quoted and at + 1 == len(body):
            return None
        at += quoted
        taken.append((body[at], body[at] == "-" and not quoted))
        at += 1
    if at >= len(body):
        return None
    found: set[str] = set()
    while taken:
        if len(taken) > 2 and taken[1][1]:
            found |= {sign for sign in TRIED if taken[0][0] <= sign <= taken[2][0]}
            del taken[:3]
        else:
            found.add(taken.pop(0)[0])
    return ((set(TRIED) - found if negated else found) - {"/"}, body[at + 1:])


def test_each_class_has_the_signs_that_a_plain_reading_finds() -> None:
    bodies = ["".join(body) for size in (1, 2, 3) for body in itertools.product(SIGNS, repeat=size)]
    for body in [*bodies, "a-cb-d", "!c-a", "a\\-c", "!.-0", ".-0", "a-a-c-c", "-ac-", "c-db-ca-d", "^a-c]", "\\]-a", "a--c", "--a-"]:
        for glob in (f"[{body}", f"[{body}]"):
            taken = read(glob[1:])
            if taken is None:  # a bracket that is never closed is only a bracket
                assert "\\" in glob or matches(glob, glob) is True, glob
                assert not matches(glob, "a"), glob
            elif "\\" not in taken[1]:
                found = {sign for sign in TRIED if matches(glob, sign + taken[1])}
                assert found == taken[0], glob


@pytest.mark.parametrize("body", ["a", "!a", "a-c", "^a-c", "]", "!]", "-a", "a-", "+--", "c-a", "!c-a", "a-ac-c", ".-0",
                                  "!.-0", "\\]", "\\a-\\c", "c-db-ca", "!\x01-\U0010ffff", "!\0-\U0010ffff", "!b", "a\\-c", "!!", "^^a"])
def test_what_a_class_meets_is_what_it_matches(body: str) -> None:
    signs, _ = read(body + "]")  # type: ignore[misc]
    for sign in TRIED:
        if sign in "/.":
            continue  # no name of a file
        quoted = "\\" + sign
        assert intersect(f"[{body}]", quoted) is (sign in signs), (body, sign)
        assert intersect(quoted, f"[{body}]x") is False
    assert reaches(f"[{body}]/x", "") is bool(signs)
    for other in ("b", "!b", "]", "c-a", "0", "!0"):
        both = signs & read(other + "]")[0]  # type: ignore[index]
        assert intersect(f"[{body}]", f"[{other}]") is bool(both), (body, other)


def test_a_part_that_nothing_can_match_ends_every_way() -> None:
    none = "[c-a]"
    for glob, other in ((f"**/{none}/x", "**"), (f"{none}/x", "**"), (f"{none}/**", "**/x"), (f"a/{none}", "a/**"),
                        (f"x{none}*", "x*"), (f"*{none}", "**"), (f"**/{none}", "a/b/**/c")):
        assert not intersect(glob, other) and not intersect(other, glob), glob
    for glob, below in ((f"{none}/x", ""), (f"a/{none}", "a"), (f"a/{none}/**", "a"), (f"**/{none}", "a/b")):
        assert not reaches(glob, below), glob
        assert not overlaps(resource(glob, "glob"), resource(below, "dir"))
    assert reaches("a/x/c", "a/x") and not reaches("a/x", "a/x") and not reaches("a/x/c", "a/x/c/d")


@pytest.mark.parametrize(("glob", "path", "yes"), [
    ("*", "", False), ("*a", "a", True), ("a*", "a", True), ("a*/b", "a/b", True), ("x/*", "x/", False), ("**/a", "/a", False),
    ("*a*", "a", True), ("*ab*ab", "ab", False), ("*ab*ab", "abab", True), ("a/**/b", "a//b", False), ("**/**/a", "a", True),
    ("**/**", "a", True), ("a/**/**", "a", False), ("***", "ab", True), ("a/***", "a/b", True), ("a/***", "a/b/c", False),
    ("?", "\n", True), ("a\\", "a\\", True), ("\\a", "a", True), ("a\\/b", "a\\/b", True), ("a|b", "a|b", True), ("a|b", "a", False),
    ("(a)+", "(a)+", True), ("a.", "ab", False), ("*.p*", "x.py", True), ("**/d*/x", "d/x", True), ("**/d*/x", "a/d1/x", True),
    ("a/", "a/b/c", True), ("a/", "a", False), ("", "", True), ("", "a", False), ("*/", "a/b", True),
])
def test_corners_of_matching(glob: str, path: str, yes: bool) -> None:
    assert matches(glob, path) is yes


def test_each_limit_is_reached_and_not_passed() -> None:
    check("a" * PATTERN_CHARS_MAX)
    check("/".join("a" * PATTERN_PARTS_MAX))
    for glob, said, limit in (("a" * (PATTERN_CHARS_MAX + 1), "is longer than 512 characters", 512),
                              ("/".join("a" * (PATTERN_PARTS_MAX + 1)), "has more than 64 parts", 64),
                              ("a/" * PATTERN_PARTS_MAX, "has more than 64 parts", 64)):
        with pytest.raises(Refusal) as no:
            check(glob)
        assert (no.value.code, no.value.message) == (Code.LIMIT, f"The glob {said}; nothing was done.")
        assert no.value.facts == {"limit": limit}
    with pytest.raises(Refusal) as no:
        check("src/[[:alpha:]]")
    assert (no.value.code, no.value.facts) == (Code.INVALID, {"resource": "src/[[:alpha:]]"})
    assert no.value.message == ("The glob 'src/[[:alpha:]]' uses a named class like `[[:alpha:]]`; write it as ranges, like "
                                "`[A-Za-z]`. Nothing was done.")
