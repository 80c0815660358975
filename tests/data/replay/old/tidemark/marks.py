"""High and low water: where the level turns."""

STEP_HOURS = 0.1


class Mark:
    """A turn of the tide."""

    def __init__(self, hour, level, high):
        self.hour = hour
        self.level = level
        self.high = high


def find_marks(harbour, hours):
    found = []
    before = harbour.level(0)
    rising = None
    steps = int(hours / STEP_HOURS)
    for step in range(1, steps + 1):
        hour = step * STEP_HOURS
        level = harbour.level(hour)
        now_rising = level > before
        if rising is not None and now_rising != rising:
            found.append(Mark(hour, level, rising))
        rising = now_rising
        before = level
    return found


def only_high(marks):
    out = []
    for mark in marks:
        if mark.high:
            out.append(mark)
    return out


def only_low(marks):
    out = []
    for mark in marks:
        if not mark.high:
            out.append(mark)
    return out


def mean_level(marks):
    total = 0.0
    for mark in marks:
        total = total + mark.level
    return total / len(marks)
