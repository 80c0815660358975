"""Pictures of the page that are kept beside the tests (tests/data/pictures/), and held against how it looks today.

Where the page was changed on purpose: `COORD_TEST_WRITE=1 make test-pictures` writes them anew; they are to be looked at like code. They
are those of one browser and its fonts, so they have a target of their own. What differs is drawn in `web/.differences/`: the kept picture,
today's, and today's with what differs in red.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT, DIFFERENCES = ROOT / "tests" / "data" / "pictures", ROOT / "web" / ".differences"
#: Browsers draw the same letter a little differently. So both pictures are made smaller by this, and a
#: pixel differs only by so much (of 255); a line that moved changes more of them than this share.
SMALLER, DIFFERS, SHARE = 4, 80, 0.005
#: Words of a picture that are others each time: how long ago, until when, where the repository lies.
SETTLE = r"""() => {
    const words = [[/\d+ (s|min|h) (ago|left)/g, '5 min $2'], [/\d\d?:\d\d(:\d\d)?(\.\d+)?Z?( [AP]M)?/g, '12:00'],
                   [/\d{4}-\d\d-\d\dT/g, '2026-01-01T'], [/[A-Z][a-z]{2} \d{1,2}, \d{4}/g, 'Jan 1, 2026'], [/\/[^ ]*\/repo\b/g, '/home/maria/shop']];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = words.reduce((text, [from, to]) => text.replace(from, to), node.data);
        if (text !== node.data) node.data = text;
    }
}"""


def check_picture(page: Any, name: str, hidden: list[Any] | None = None) -> None:
    """That the page looks as in the kept picture of this name. `hidden`: parts that are painted over."""
    from PIL import Image

    page.evaluate(SETTLE)
    today = Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide", mask=hidden or []))).convert("RGB")
    kept = KEPT / f"{name}.webp"
    if os.environ.get("COORD_TEST_WRITE"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        today.save(kept, quality=60, method=6)
    before = Image.open(kept).convert("RGB")
    assert before.size == today.size, name
    differing = differing_pixels(before, today)
    share = differing.tobytes().count(b"\xff") / (differing.width * differing.height)
    if share > SHARE:
        DIFFERENCES.mkdir(parents=True, exist_ok=True)
        red = Image.new("RGB", today.size, "red")
        marked = Image.composite(Image.blend(today, red, 0.6), today, differing.resize(today.size))
        beside = Image.new("RGB", (3 * today.width, today.height))
        for place, picture in enumerate((before, today, marked)):
            beside.paste(picture, (place * today.width, 0))
        where = DIFFERENCES / f"{name}.png"
        beside.save(where)
        raise AssertionError(f"{name} looks otherwise than it did ({share:.1%} of it): {where}")


def differing_pixels(before: Any, today: Any) -> Any:
    """White where two pictures differ, black elsewhere; both made smaller before."""
    from PIL import ImageChops

    difference = ImageChops.difference(before.reduce(SMALLER), today.reduce(SMALLER)).convert("L")
    return difference.point(lambda value: 255 if value > DIFFERS else 0)
