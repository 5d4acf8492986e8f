"""Statistics over repeats: levels, ratios with intervals, and a test of whether one run is slower than another."""

from .levels import Level, PrefillLevel, Spread, levels_of, prefill_levels_of
from .permutation import Stratum, Tested, holm, is_worse, least_possible_p
from .quantities import COMPARED, QUANTITIES, Quantity, QuantityName
from .ratios import Ratio, paired_ratio_intervals, ratio_interval, ratio_intervals
from .summary import RunSummary, summary_of

__all__ = [
    "COMPARED",
    "QUANTITIES",
    "Level",
    "PrefillLevel",
    "Quantity",
    "QuantityName",
    "Ratio",
    "RunSummary",
    "Spread",
    "Stratum",
    "Tested",
    "holm",
    "is_worse",
    "least_possible_p",
    "levels_of",
    "paired_ratio_intervals",
    "prefill_levels_of",
    "ratio_interval",
    "ratio_intervals",
    "summary_of",
]
