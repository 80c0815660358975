"""Units that sailors use."""

from tidemark.constants import FATHOM, FOOT


def in_feet(metres):
    return metres / FOOT


def in_fathoms(metres):
    return metres / FATHOM


def from_feet(feet):
    return feet * FOOT


def from_fathoms(fathoms):
    return fathoms * FATHOM
