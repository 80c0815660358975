"""A harbour: where it is, and how the water moves there."""

from tidemark.constants import DATUM
from tidemark.waves import Wave, height


class Harbour:
    """A place with a name and its partial tides."""

    def __init__(self, name, waves, offset=0.0, datum=DATUM):
        self.name = name
        self.waves = list(waves)
        self.offset = offset
        self.datum = datum

    def level(self, hour):
        """Metres above the datum."""
        return self.offset + sum(height(wave, hour) for wave in self.waves)

    def add(self, amplitude, period, phase=0.0):
        if period <= 0:
            raise ValueError("a period must be positive")
        self.waves.append(Wave(amplitude, period, phase))

    def range(self):
        return 2 * sum(wave.amplitude for wave in self.waves)

    def describe(self):
        return f"{self.name}, in metres above {self.datum}"

    def rename(self, name):
        self.name = name.strip()

    def same_place(self, other):
        return self.name.casefold() == other.name.casefold()

    def quiet(self):
        return self.range() < 0.3

    def copy(self):
        return Harbour(self.name, self.waves, self.offset, self.datum)
