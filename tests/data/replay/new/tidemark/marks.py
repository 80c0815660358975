"""High and low water: where the level turns."""

#: The level is looked at this often.
STEP_HOURS = 0.05


class Mark:
    """A turn of the tide."""

    __slots__ = ("high", "hour", "level")

    def __init__(self, hour, level, high):
        self.hour = hour
        self.level = level
        self.high = high


def find_marks(harbour, hours):
    found = []
    before = harbour.level(0)
    rising = None
    steps = round(hours / STEP_HOURS)
    for step in range(1, steps + 1):
        hour = step * STEP_HOURS
        level = harbour.level(hour)
        now_rising = level > before
        if rising is not None and now_rising != rising:
            found.append(Mark(hour - STEP_HOURS, before, rising))
        rising = now_rising
        before = level
    return found


def only_high(marks):
    return [mark for mark in marks if mark.high]


def only_low(marks):
    return [mark for mark in marks if not mark.high]


def mean_level(marks):
    if not marks:
        return 0.0
    return sum(mark.level for mark in marks) / len(marks)
