"""What the page shows of others' words is what every other door shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from coordinator.words.texts import is_harmless

PAGE = Path(__file__).parents[2] / "web/src/words/texts.ts"


def test_the_page_writes_out_the_signs_that_coord_writes_out() -> None:
    (signs,) = re.findall(r"^export const UNSAFE = /(\[.+\])/gu;$", PAGE.read_text("utf-8"), re.MULTILINE)
    unsafe = re.compile(re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: f"\\U{found[1]:0>8}", signs))
    differ = [hex(sign) for sign in range(sys.maxunicode + 1)
              if (unsafe.search(chr(sign)) is None) is not is_harmless(chr(sign))]
    assert differ == []
