"""Springs and neaps: how sun and moon work together."""

from tidemark.constants import SEMIDIURNAL_HOURS, SOLAR_HOURS


def spring_days():
    """Days from one spring tide to the next."""
    beat = 1 / SOLAR_HOURS - 1 / SEMIDIURNAL_HOURS
    return 1 / beat / 24
