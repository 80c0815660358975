"""Names that one side removed and the other newly uses: the two fit line by line, and cannot work.

Asked only where lines alone would not decide: neighbouring lines of one body, and united imports.
Knows words, no language. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

_NAME = re.compile(rb"[^\W\d]\w+")
_NUMBER = re.compile(rb"(?<![\w.])\d[\d_]+(?:\.\d+)?(?!\w)")
#: Comments, and texts in quotes: their words are no uses of names.
_SAID = re.compile(rb"#[^\n]*|//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
#: Words that begin and join statements, in any of the languages.
_KEYWORDS = frozenset(
    b"and as assert async await begin bool break case catch char class const continue def default "
    b"defer del do double elif else elsif end enum except export extends false False final finally "
    b"float fn for foreach from func function global go goto if impl import in include int is "
    b"lambda let long match mod mut namespace new nil None nonlocal not null or package pass "
    b"private protected pub public raise range require rescue return self short static str string "
    b"struct super switch then this throw true True try type typeof unless until use using var "
    b"void when where while with yield".split())
#: The words of a name: `TextWidget` and `text_widget` have two.
_PART = re.compile(rb"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def names(base: bytes, ours: bytes, theirs: bytes) -> list[str]:
    """Find names that one side removed everywhere, and that the other uses more often than before;
    and numbers that both sides added, as two fixes of one fault do."""
    was, *sides = (Counter(_used(text)) for text in (base, ours, theirs))
    matches = {name for gone, using in (sides, sides[::-1]) for name, count in was.items()
               if not gone[name] and using[name] > count}
    numbers = [set(_NUMBER.findall(text)) for text in (base, ours, theirs)]
    matches |= (numbers[1] & numbers[2]) - numbers[0]
    return sorted(data.decode("utf-8", "replace") for data in matches)


def _used(text: bytes) -> list[bytes]:
    return [name for name in _NAME.findall(_SAID.sub(b" ", text)) if name not in _KEYWORDS]


def imports(base: Iterable[bytes], ours: Iterable[bytes], theirs: Iterable[bytes]) -> list[str]:
    """Find imports that one side adds by names, or from a place, that the other has renamed in all
    its imports. Each argument is a text for each import."""
    was, mine, other = set(base), set(ours), set(theirs)
    matches: set[bytes] = set()
    for renaming, adding in ((mine, other), (other, mine)):
        put_in = [_parts(data) for data in renaming - was]
        renamed = [parts for data in was - renaming
                   if any((parts := _parts(data)) & new for new in put_in)]
        lost = set().union(*renamed).difference(*put_in)
        matches |= {data for data in adding - was - renaming if _parts(data) & lost}
    return sorted(data.decode("utf-8", "replace") for data in matches)


def _parts(text: bytes) -> set[tuple[bytes, ...]]:
    """Return the words of a text, each alone and with the next."""
    words = _PART.findall(text)
    return {(word,) for word in words} | set(pairwise(words))
