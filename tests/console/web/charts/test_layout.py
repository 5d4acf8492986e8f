"""What lies where on a chart, and what it says."""

from __future__ import annotations

import pytest

from roundhouse.console.web.charts import Axis, ChartPoint, Interval, Rule, Series, interval_chart, line_chart

X, Y = Axis("Concurrency", kind="log2"), Axis("Output", "tokens/s")


def chart(*series: Series, **more: object):  # type: ignore[no-untyped-def]
    return line_chart("speed", "Throughput", "Medians.", X, Y, series, **more)  # type: ignore[arg-type]


def points(*values: float | None, around: float = 0) -> list[ChartPoint]:
    return [
        ChartPoint(2.0**power, value, *(() if value is None or not around else (value - around, value + around)))
        for power, value in enumerate(values)
    ]


def test_more_is_higher_and_further() -> None:
    (drawn,) = chart(Series("a", points(10, 20, 40))).series
    assert [each.x for each in drawn.points] == [4, 50, 96]
    assert [each.y for each in drawn.points] == [75, 50, 0]
    assert drawn.line == "M40 750L500 500L960 0"


def test_intervals_of_neighbours_are_a_band_and_one_alone_is_a_whisker() -> None:
    (drawn,) = chart(Series("a", points(10, 20, around=2))).series
    assert drawn.band.startswith("M")
    assert drawn.band.endswith("Z")
    assert drawn.points[0].low is None
    (alone,) = chart(Series("a", points(10, around=2))).series
    assert (alone.band, alone.line) == ("", "")
    assert alone.points[0].low is not None
    assert alone.points[0].high is not None
    assert alone.points[0].low > alone.points[0].high, "places count from the top"


def test_a_gap_interrupts_the_line_and_marks_nothing() -> None:
    (drawn,) = chart(Series("a", points(10, 20, None, 30, 40))).series
    assert drawn.line.count("M") == 2
    assert len(drawn.points) == 4


def test_nothing_known_is_an_empty_chart() -> None:
    assert chart().is_empty
    assert chart(Series("a", points(None, None))).is_empty
    assert chart(Series("a", [ChartPoint(0, 5)])).is_empty, "zero has no place on a logarithmic axis"


def test_equal_values_have_a_place() -> None:
    (drawn,) = chart(Series("a", [ChartPoint(8, 100), ChartPoint(8, 100)])).series
    assert {each.x for each in drawn.points} == {50}


def test_each_series_looks_otherwise_also_without_colours() -> None:
    drawn = chart(*(Series(str(number), points(number + 1)) for number in range(16))).series
    assert len({(each.mark, each.colour) for each in drawn}) == 16
    assert len({each.mark for each in drawn[:8]}) == 8
    assert len({each.dash for each in drawn[:4]}) == 4


def test_a_series_can_keep_its_look_in_another_chart() -> None:
    both = chart(Series("a", points(1)), Series("b", points(2))).series
    (alone,) = chart(Series("b", points(2), look=1)).series
    assert (alone.colour, alone.mark, alone.dash) == (both[1].colour, both[1].mark, both[1].dash)


def test_a_legend_is_there_when_it_takes_one() -> None:
    assert not chart(Series("a", points(1))).has_legend
    assert chart(Series("a", points(1)), Series("b", points(2))).has_legend


def test_a_rule_is_on_the_chart_however_high() -> None:
    found = chart(Series("a", points(10)), rules=[Rule(100, "baseline")])
    assert found.y_scale.most == 100
    assert found.rules[0].place == 0


def test_the_table_has_a_column_for_each_series_and_says_what_is_noisy() -> None:
    table = chart(Series("a", points(10, 20, around=1)), Series("b", [ChartPoint(2, 5, note="noisy")])).table
    assert table.head == ("Concurrency", "a, tokens/s", "b, tokens/s")
    assert table.rows == (
        (("1", ""), ("10", "9 – 11"), ("—", "")),
        (("2", ""), ("20", "19 – 21"), ("5", "noisy")),
    )


def test_the_table_of_labelled_points_has_a_row_for_each() -> None:
    x = Axis("Inter-token", "ms")
    table = line_chart("t", "Trade-off", "", x, Y, [Series("a", [ChartPoint(8.25, 100, label="4")])]).table
    assert table.head == ("Point", "Inter-token, ms", "Output, tokens/s")
    assert table.rows == ((("a", "4"), ("8.25", ""), ("100", "")),)


def test_a_mark_tells_all_that_is_known_of_it() -> None:
    (drawn,) = chart(Series("a", [ChartPoint(8, 12.345, 11, 13, flag="slower", note="noisy")])).series
    assert drawn.points[0].text == "a: 12.3 tokens/s, concurrency 8, between 11 and 13, slower, noisy"


def test_moments_are_told_as_such() -> None:
    found = line_chart("t", "Trend", "", Axis("Began", kind="time"), Y, [Series("a", [ChartPoint(1_764_500_000, 5)])])
    assert found.table.rows[0][0] == ("2025-11-30 10:53", "")


def test_intervals_lie_about_zero_with_the_limit_on_the_picture() -> None:
    found = interval_chart("d", "Against the base", "", "points", [Interval("arithmetic", -0.2, -0.6, 0.2)], limit=-0.8)
    (row,) = found.rows
    assert row.low < row.x < row.high
    assert row.low < found.zero < row.high
    assert found.limit is not None
    assert 0 <= found.limit < row.low
    assert found.ticks[0].text == "-0.8"
    assert "0" in [tick.text for tick in found.ticks]


@pytest.mark.parametrize("intervals", [[], [Interval("same", 0, 0, 0)]])
def test_no_differences_have_an_axis_too(intervals: list[Interval]) -> None:
    found = interval_chart("d", "Against the base", "", "points", intervals)
    assert found.zero == pytest.approx(50)
