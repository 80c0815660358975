"""A harbour: where it is, and how the water moves there."""

from tidemark.constants import DATUM
from tidemark.waves import Wave, height


class Harbour:
    """A place with a name and its partial tides."""

    def __init__(self, name, waves, offset=0.0):
        self.name = name
        self.waves = list(waves)
        self.offset = offset
        self.datum = DATUM

    def level(self, hour):
        total = self.offset
        for wave in self.waves:
            total = total + height(wave, hour)
        return total

    def add(self, amplitude, period, phase=0.0):
        self.waves.append(Wave(amplitude, period, phase))

    def range(self):
        total = 0.0
        for wave in self.waves:
            total = total + 2 * wave.amplitude
        return total

    def describe(self):
        return self.name + " above " + self.datum

    def rename(self, name):
        self.name = name

    def same_place(self, other):
        return self.name == other.name

    def quiet(self):
        return self.range() < 0.5

    def copy(self):
        return Harbour(self.name, self.waves, self.offset)
