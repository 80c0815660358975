"""Tables of high and low water."""

from tidemark.constants import DAYS, LEAST_MARK, PAGE_ROWS
from tidemark.marks import find_marks


class Table:
    """All marks of a harbour over some days."""

    def __init__(self, harbour, days=DAYS):
        self.harbour = harbour
        self.days = days
        self.rows = []
        self.filled = False

    def fill(self):
        if self.filled:
            return self
        hours = self.days * 24
        for mark in find_marks(self.harbour, hours):
            if abs(mark.level) >= LEAST_MARK:
                self.rows.append(mark)
        self.filled = True
        return self

    def pages(self):
        starts = range(0, len(self.rows), PAGE_ROWS)
        return [self.rows[at : at + PAGE_ROWS] for at in starts]

    def highest(self):
        return max(self.rows, key=lambda row: row.level, default=None)

    def lowest(self):
        return min(self.rows, key=lambda row: row.level, default=None)

    def between(self, first, last):
        return [row for row in self.rows if first <= row.hour <= last]

    def title(self):
        return f"Tides at {self.harbour.name}, {self.days} days"

    def empty(self):
        return not self.rows

    def next_high(self, hour):
        later = (row for row in self.rows if row.hour > hour and row.high)
        return next(later, None)
