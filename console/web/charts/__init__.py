"""Charts that the server draws: geometry in Python, looks in ``static/css/charts.css``, markup in ``partials/charts.html``.

A page says what is shown: :class:`Series` of :class:`ChartPoint` on two :class:`Axis`; :func:`line_chart` lays it out, and the
macro ``charts.lines`` draws it with a title, a description, a legend and its data as a table. The same serves curves over
concurrency (``log2``), trade-offs (points with labels) and what goes over time (``time``). :func:`interval_chart` draws
differences with their intervals about zero.
"""

from .intervals import Interval, IntervalChart, interval_chart
from .layout import Chart, line_chart
from .model import Axis, ChartPoint, Rule, Series
from .scales import Scale, Tick

__all__ = [
    "Axis",
    "Chart",
    "ChartPoint",
    "Interval",
    "IntervalChart",
    "Rule",
    "Scale",
    "Series",
    "Tick",
    "interval_chart",
    "line_chart",
]
