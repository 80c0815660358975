"""Tables as text."""

from tidemark.units import in_feet


def row_text(row, feet=False):
    level = row.level
    unit = "m"
    if feet:
        level = in_feet(level)
        unit = "ft"
    name = "high" if row.high else "low"
    return name + " " + str(round(level, 2)) + " " + unit


def clock(hour):
    minutes = int(hour * 60) % 60
    return str(int(hour) % 24) + ":" + str(minutes).zfill(2)


def day_of(hour):
    return int(hour // 24)


def page_text(rows, feet=False):
    lines = []
    for row in rows:
        lines.append(clock(row.hour) + "  " + row_text(row, feet))
    return "\n".join(lines)


def table_text(table, feet=False):
    parts = [table.title()]
    for page in table.pages():
        parts.append(page_text(page, feet))
    return "\n\n".join(parts)


def underline(title):
    return title + "\n" + "-" * len(title)


def shorten(text, width):
    if len(text) <= width:
        return text
    return text[: width - 1] + "."
