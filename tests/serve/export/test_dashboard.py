"""The dashboard asks for every metric that there is, and for nothing else."""

from __future__ import annotations

import re
from typing import Any

from roundhouse.serve.export.dashboard import dashboard
from roundhouse.serve.triton.metrics import METRICS

BOARD = dashboard()
PANELS: list[dict[str, Any]] = BOARD["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]


def test_every_metric_is_shown_and_every_one_that_is_asked_for_exists() -> None:
    asked = {name for expression in EXPRESSIONS for name in re.findall(r"roundhouse_\w+", expression)}
    series: dict[str, set[str]] = {}
    for name, _, kind, _ in METRICS:
        series[name] = {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    assert asked == set().union(*series.values())


def test_counters_are_rates_and_gauges_are_not() -> None:
    kinds = {name: kind for name, _, kind, _ in METRICS}
    for expression in EXPRESSIONS:
        for name in re.findall(r"roundhouse_\w+", expression):
            kind = kinds.get(name, "histogram")
            counted = re.search(rf"(rate|increase)\({name}\{{[^}}]*\}}\[", expression) is not None
            assert counted == (kind != "gauge"), expression


def test_every_question_is_about_the_chosen_models() -> None:
    for expression in EXPRESSIONS:
        assert expression.count("roundhouse_") == expression.count('{model=~"$model"}'), expression
        assert expression.count("(") == expression.count(")")
    names = [variable["name"] for variable in BOARD["templating"]["list"]]
    assert names == ["datasource", "model"]


def test_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert all(panel["description"] for panel in PANELS if panel["type"] != "row")
