"""Tables of high and low water."""

from tidemark.constants import DAYS, LEAST_MARK, PAGE_ROWS
from tidemark.marks import find_marks


class Table:
    """All marks of a harbour over some days."""

    def __init__(self, harbour, days=DAYS):
        self.harbour = harbour
        self.days = days
        self.rows = []

    def fill(self):
        hours = self.days * 24
        for mark in find_marks(self.harbour, hours):
            if abs(mark.level) >= LEAST_MARK:
                self.rows.append(mark)
        return self

    def pages(self):
        out = []
        for at in range(0, len(self.rows), PAGE_ROWS):
            out.append(self.rows[at:at + PAGE_ROWS])
        return out

    def highest(self):
        return max(self.rows, key=lambda row: row.level)

    def lowest(self):
        return min(self.rows, key=lambda row: row.level)

    def between(self, first, last):
        out = []
        for row in self.rows:
            if first <= row.hour <= last:
                out.append(row)
        return out

    def title(self):
        return "Tides at " + self.harbour.name

    def empty(self):
        return len(self.rows) == 0

    def next_high(self, hour):
        for row in self.rows:
            if row.hour > hour and row.high:
                return row
        return None
