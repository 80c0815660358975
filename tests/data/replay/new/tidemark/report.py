"""Tables as text: for a terminal, or to pin up at the quay."""

from tidemark.units import in_feet


def row_text(row, feet=False):
    level = row.level
    unit = "m"
    if feet:
        level = in_feet(level)
        unit = "ft"
    name = "high" if row.high else "low "
    return f"{name} {level:6.2f} {unit}"


def clock(hour):
    hours, minutes = divmod(round(hour * 60), 60)
    return f"{hours % 24:02d}:{minutes:02d}"


def day_of(hour):
    return 1 + int(hour // 24)


def page_text(rows, feet=False):
    return "\n".join(f"{clock(row.hour)}  {row_text(row, feet)}" for row in rows)


def table_text(table, feet=False):
    parts = [underline(table.title())]
    for page in table.pages():
        parts.append(page_text(page, feet))
    return "\n\n".join(parts)


def underline(title):
    return title + "\n" + "=" * len(title)


def shorten(text, width):
    if len(text) <= width:
        return text
    return text[: max(width - 3, 0)] + "..."
