"""What the planner learns from benchmarks: decode rows of the same engine on the same hardware.

A decode row is requests in flight over the median time between two tokens of one of them: decoding alone at one request, and
above that with what prompts of the others took of the same steps. A run's output tokens over its duration would count all that
prompts took. Requests hold their whole prompt and, on average, half of their answer meanwhile: that is the row's context.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Any

from roundhouse.build.home import Home
from roundhouse.build.identity import SPEED_KEYS
from roundhouse.build.planner.decode import MeasuredRun
from roundhouse.build.planner.gpus import same_device
from roundhouse.build.planner.plan import Plan
from roundhouse.build.recipe import GUARD_SAMPLE
from roundhouse.errors import ServeError

from ..history import read_header
from .points import Point
from .records import Benchmark, BenchmarkHeader
from .statistics import levels_of
from .store import BenchmarkStore, read_benchmark

__all__ = ["decode_rows_of", "is_of", "measured_in", "measured_runs"]


_LOOKED_AT = 200
"""Of the newest runs: a plan is made in less than a second, however long the history is."""


def measured_in(home: Home, plan: Plan) -> list[MeasuredRun]:
    """Decode rows of a plan's engine from the newest run of a home that has some. Damaged runs are passed over."""
    return measured_runs(_runs_of(home, plan), plan)


def _runs_of(home: Home, plan: Plan) -> Iterator[Benchmark]:
    for folder in islice(BenchmarkStore(home).records, _LOOKED_AT):
        try:
            if is_of(read_header(folder, BenchmarkHeader), plan):
                yield read_benchmark(folder)
        except ServeError:
            continue


def measured_runs(runs: Iterable[Benchmark], plan: Plan) -> list[MeasuredRun]:
    """Decode rows of a plan's engine on its hardware, all of one run, so that one run can be named.

    Args:
        runs: the newest first; the first one that fits and has rows is taken.
        plan: made without measured rows.
    """
    for run in runs:
        if run.state == "finished" and is_of(run.header, plan) and (rows := decode_rows_of(run.header, run.points)):
            return rows
    return []


def is_of(header: BenchmarkHeader, plan: Plan) -> bool:
    """Whether a run measured what a plan is of: the same model, quantized, spread and run alike, on the same device.

    Files are not hashed for it: the model is the same when it is named alike and as large.

    An imported run counts for nothing, here as in the console: a file may say anything of its engine and its hardware, and a
    device that is called alike may be cooled, clocked and driven otherwise. A plan would name as measured what nobody here has
    measured.
    """
    hardware, theirs = header.environment.hardware, (header.subject.manifest or {}).get("plan", {})
    if hardware is None or not theirs or header.imported_from is not None:
        return False
    ours = plan.recipe.model_dump(mode="json")
    recipe: dict[str, Any] = theirs.get("recipe", {})
    return (
        same_device(hardware, plan.hardware)
        and _ran_as_planned(header.subject.settings, plan)
        and all(recipe.get(key) == ours[key] for key in ("model", *SPEED_KEYS))
        and all(theirs.get(key) == getattr(plan, key) for key in ("group_size", "base_bytes", "checkpoint_bytes"))
    )


def _ran_as_planned(settings: dict[str, Any] | None, plan: Plan) -> bool:
    """Whether an engine ran with what a plan takes for granted; not when nobody knows how it ran.

    Plans know no kernels: they are of an engine that takes the best there are.
    """
    if settings is None or settings.get("guard") != plan.recipe.guard:
        return False
    if plan.recipe.guard == "tags+content" and settings.get("guard_sample") != (plan.recipe.guard_sample or GUARD_SAMPLE):
        return False
    return (settings.get("kernels"), settings.get("precision")) == ("auto", "engine")


def decode_rows_of(header: BenchmarkHeader, points: Sequence[Point]) -> list[MeasuredRun]:
    """Decode rows of one run, the lowest concurrency first.

    A concurrency at which not all requests could be in flight at once has none: nobody knows how many were. Nor has one whose
    points were all disturbed, or whose answers had a single token.
    """
    batch = (header.subject.settings or {}).get("max_batch_size")
    quiet = [point for point in points if not point.noisy and point.completed and _all_in_flight(point, batch)]
    rows = []
    for level in levels_of(quiet):
        if level.inter_token_p50 is None or level.inter_token_p50.median <= 0:
            continue
        held = median(_context(point) for point in quiet if point.concurrency == level.concurrency)
        speed = level.concurrency / level.inter_token_p50.median
        rows.append(MeasuredRun(level.concurrency, tokens_per_s=speed, context=round(held), run=header.id))
    return rows


def _all_in_flight(point: Point, batch: int | None) -> bool:
    if batch is not None and point.concurrency > batch:
        return False
    return point.engine is None or (point.engine.running_most >= point.concurrency and not point.engine.preemptions)


def _context(point: Point) -> float:
    return (point.input_tokens + point.output_tokens / 2) / point.completed
