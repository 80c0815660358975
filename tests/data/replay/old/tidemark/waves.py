"""Partial tides."""

import math


class Wave:
    """One cosine: amplitude in metres, period and phase in hours."""

    def __init__(self, amplitude, period, phase):
        self.amplitude = amplitude
        self.period = period
        self.phase = phase


def height(wave, hour):
    angle = 2 * math.pi * (hour - wave.phase) / wave.period
    return wave.amplitude * math.cos(angle)


def speed(wave, hour):
    angle = 2 * math.pi * (hour - wave.phase) / wave.period
    return -wave.amplitude * math.sin(angle)


def strongest(waves):
    best = None
    for wave in waves:
        if best is None or wave.amplitude > best.amplitude:
            best = wave
    return best


def shifted(wave, hours):
    return Wave(wave.amplitude, wave.period, wave.phase + hours)


def scaled(wave, factor):
    return Wave(wave.amplitude * factor, wave.period, wave.phase)


def opposite(wave):
    return shifted(wave, wave.period / 2)
