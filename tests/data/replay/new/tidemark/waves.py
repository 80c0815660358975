"""Partial tides: the cosines that a tide is the sum of."""

import math


class Wave:
    """One cosine: amplitude in metres, period and phase in hours."""

    __slots__ = ("amplitude", "period", "phase")

    def __init__(self, amplitude, period, phase=0.0):
        self.amplitude = amplitude
        self.period = period
        self.phase = phase


def angle(wave, hour):
    return math.tau * (hour - wave.phase) / wave.period


def height(wave, hour):
    return wave.amplitude * math.cos(angle(wave, hour))


def speed(wave, hour):
    turn = math.tau / wave.period
    return -turn * wave.amplitude * math.sin(angle(wave, hour))


def strongest(waves):
    return max(waves, key=lambda wave: wave.amplitude, default=None)


def shifted(wave, hours):
    return Wave(wave.amplitude, wave.period, (wave.phase + hours) % wave.period)


def scaled(wave, factor):
    return Wave(abs(factor) * wave.amplitude, wave.period, wave.phase)


def opposite(wave):
    """The wave that would cancel this one."""
    return shifted(wave, wave.period / 2)
