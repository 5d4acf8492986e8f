from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.console.page_maps.cells import Cell
from roundhouse.console.web.drawing import memory_picture, page_shapes, spark_line, stage_bars


@dataclass
class Stage:
    name: str = "quantize"
    state: str = "running"
    what: str = ""
    begins: float | None = None
    seconds: float | None = None
    done: float | None = None
    left: float | None = None


def test_memory_that_fits_leaves_room_free() -> None:
    memory = memory_picture([("weights", 30), ("kv", 20)], 100)
    assert (memory.used, memory.free, memory.excess, memory.edge) == (50, 50, 0, 100)
    assert [(part.x, part.width, part.share) for part in memory.parts] == [(0, 30, 0.3), (30, 20, 0.2)]


def test_memory_that_does_not_fit_goes_past_the_edge() -> None:
    memory = memory_picture([("weights", 100), ("kv", 100)], 160)
    assert (memory.excess, memory.free, memory.edge) == (40, 0, 80)
    assert memory.parts[1].x + memory.parts[1].width == 100
    assert memory.parts[1].share == 0.625


def test_a_machine_without_memory_is_all_excess() -> None:
    memory = memory_picture([("weights", 10)], 0)
    assert (memory.excess, memory.edge) == (10, 0)


def test_stages_share_one_axis_with_what_is_to_come() -> None:
    first, second, third = stage_bars([Stage(begins=0, seconds=50), Stage(begins=50, seconds=25, left=25), Stage()])
    assert (first.x, first.width) == (0, 50)
    assert (second.x, second.width, second.ahead) == (50, 25, 25)
    assert (third.width, third.ahead) == (0, 0)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5), st.none() | st.floats(0, 1e5)), min_size=1, max_size=8))
def test_stages_stay_inside_the_picture_and_are_seen(times: list[tuple[float, float, float | None]]) -> None:
    for bar in stage_bars([Stage(begins=begins, seconds=seconds, left=left) for begins, seconds, left in times]):
        assert bar.width >= 0.6
        assert bar.x >= -1e-9
        assert bar.x + bar.width + bar.ahead <= 100.01


def test_cells_that_follow_one_another_and_say_the_same_are_drawn_as_one() -> None:
    cells = [Cell("used", "mine"), Cell("used", "mine"), Cell("used", "mine", marked=True), Cell("free", "free")]
    shapes = page_shapes(cells, 3)
    assert [(shape.state, shape.text, shape.marked) for shape in shapes] == [
        ("used", "mine", False),
        ("used", "mine", True),
        ("free", "free", False),
    ]
    assert [shape.path for shape in shapes] == ["M1 1h8v8h-8zM11 1h8v8h-8z", "M21 1h8v8h-8z", "M1 11h8v8h-8z"]


def test_a_sparkline_stands_on_zero_and_skips_what_is_missing() -> None:
    spark = spark_line([10.0, None, 20.0])
    assert spark is not None
    assert spark.points == "0.0,12.0 100.0,2.0"
    assert (spark.first, spark.last, spark.least, spark.most) == (10, 20, 10, 20)


@pytest.mark.parametrize("values", [[], [1.0], [None, 1.0, None]])
def test_a_line_needs_two_points(values: list[float | None]) -> None:
    assert spark_line(values) is None


def test_an_idle_deployment_is_a_line_at_the_bottom() -> None:
    spark = spark_line([0.0, 0.0])
    assert spark is not None
    assert spark.points == "0.0,22.0 100.0,22.0"
