"""A run as its page shows it."""

from __future__ import annotations

from measured import benchmark_content

from roundhouse.console.benchmarks.shown import levels_shown, prefill_shown
from roundhouse.console.web.benchmark_charts import run_charts
from roundhouse.serve.benchmark.points import GpuUse, Point
from roundhouse.serve.benchmark.statistics import summary_of


def points(**changes: object) -> list[Point]:
    """Three repeats at 1 and at 8, each changed alike."""
    made = benchmark_content(0, concurrencies=(8, 1)).points
    return [point.model_copy(update={"failed": {}, "other_cores": 0.0, **changes}) for point in made]


def test_levels_are_in_order_with_the_middle_of_their_repeats() -> None:
    one, eight = levels_shown(points())
    assert (one.concurrency, eight.concurrency) == (1, 8)
    speeds = sorted(point.output_tokens_per_s for point in eight.points)
    assert (eight.output_least, eight.output_tokens_per_s, eight.output_most) == tuple(speeds)
    assert eight.ttft is not None
    halves = sorted(point.ttft.p50 for point in eight.points if point.ttft)
    assert (eight.ttft.p50_least, eight.ttft.p50, eight.ttft.p50_most) == tuple(halves)


def test_what_nobody_saw_is_not_there() -> None:
    level = levels_shown(points(ttft=None, engine=None, other_cores=None))[0]
    assert level.ttft is None
    assert level.engine is None
    assert level.other_cores_most is None
    assert level.gpus == ()
    assert levels_shown([]) == ()
    assert prefill_shown([]) == ()


def test_percentiles_that_an_imported_file_lacks_are_left_out() -> None:
    made = points()
    lacking = [point.model_copy(update={"ttft": point.ttft and point.ttft.model_copy(update={"p90": None})}) for point in made]
    level = levels_shown(lacking)[0]
    assert level.ttft is not None
    assert level.ttft.p90 is None
    assert level.ttft.p99 is not None
    title = next(chart for chart in run_charts([level], []) if chart.id == "ttft")
    assert [each.name for each in title.series] == ["p50", "p99"]


def test_failures_are_summed_by_kind_with_the_frequent_first() -> None:
    level = levels_shown(points(failed={"refused": 1, "timeout": 3}, cancelled=2))[0]
    assert list(level.failed.items()) == [("timeout", 9), ("refused", 3)]
    assert level.asked == level.completed + 12 + 6


def test_noise_is_counted_with_its_worst() -> None:
    disturbed = points(other_cores=0.7)[:1] + points()[1:3]
    (level,) = levels_shown(disturbed)
    assert (level.noisy, level.other_cores_most) == (1, 0.7)


def test_the_engine_counts_sums_of_events_and_the_most_of_moments() -> None:
    level = levels_shown(points())[0]
    assert level.engine is not None
    engines = [point.engine for point in level.points if point.engine is not None]
    assert level.engine.checks == sum(each.tag_checks for each in engines)
    assert level.engine.kv_pages_used_most == max(each.kv_pages_used_most for each in engines)
    assert level.engine.kv_share_mean == 4 / 512
    assert level.engine.cached_share == 0


def test_energy_buys_tokens_where_one_gpu_tells_it() -> None:
    def level_with(*gpus: GpuUse):  # type: ignore[no-untyped-def]
        return levels_shown(points(gpus=gpus))[0]

    gpu = GpuUse(index=0, name="H200", memory_used_most=10, energy_j=50.0, utilization_mean=0.5)
    level = level_with(gpu)
    output = sum(point.output_tokens for point in level.points)
    (shown,) = level.gpus
    assert (shown.energy_j, shown.output_tokens_per_j) == (150, output / 150)
    assert level_with(gpu.model_copy(update={"energy_j": None})).gpus[0].energy_j is None
    both = level_with(gpu, gpu.model_copy(update={"index": 1})).gpus
    assert [each.output_tokens_per_j for each in both] == [None, None], "no GPU alone made them"


def test_a_prompt_length_that_nobody_answered_is_shown_with_what_failed() -> None:
    lost = {"requests": 0, "ttft": None, "measured_tokens": None, "failed": {"timeout": 3}}
    unanswered = [point.model_copy(update=lost) for point in benchmark_content(0).prefill]
    for shown in prefill_shown(unanswered):
        assert (shown.tokens_per_s, shown.least, shown.most, shown.ttft_p50) == (None, None, None, None)
        assert shown.failed == 3 * shown.repeats
    assert "prefill" not in {chart.id for chart in run_charts((), prefill_shown(unanswered))}
    assert summary_of((), unanswered).prefill_tokens_per_s is None


def test_prefill_is_by_prompt_length() -> None:
    short, long = prefill_shown(benchmark_content(0).prefill)
    assert (short.input_tokens, long.input_tokens) == (128, 512)
    assert short.least <= short.tokens_per_s <= short.most
    assert short.repeats == 3
