"""Statistics over repeats: levels, ratios with intervals, and a test of whether one run is slower than another."""

from .levels import Level, PrefillLevel, Spread, levels_of, prefill_levels_of
from .permutation import Stratum, Tested, holm, is_worse
from .quantities import COMPARED, QUANTITIES, Quantity, QuantityName
from .ratios import Ratio, ratio_interval, ratio_intervals

__all__ = [
    "COMPARED",
    "QUANTITIES",
    "Level",
    "PrefillLevel",
    "Quantity",
    "QuantityName",
    "Ratio",
    "Spread",
    "Stratum",
    "Tested",
    "holm",
    "is_worse",
    "levels_of",
    "prefill_levels_of",
    "ratio_interval",
    "ratio_intervals",
]
