"""Benchmark runs and evaluations for tests: made up, and written down as workers write them down."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from roundhouse.build.hardware import Hardware
from roundhouse.build.home import Home
from roundhouse.console.benchmarks.content import BenchmarkContent
from roundhouse.console.benchmarks.recording import record_benchmark
from roundhouse.console.evaluations.recording import record_evaluation
from roundhouse.serve.accuracy.records import Difference, Evaluation, EvaluationHeader, GateResult, TaskScore
from roundhouse.serve.accuracy.store import SCORES, EvaluationStore
from roundhouse.serve.benchmark.measuring import percentiles
from roundhouse.serve.benchmark.points import EngineCounts, LiveSample, Point, PrefillPoint
from roundhouse.serve.benchmark.records import BenchmarkHeader
from roundhouse.serve.benchmark.store import POINTS, PREFILL, SAMPLES, BenchmarkStore
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.history import RecordState, RecordWriter
from roundhouse.serve.measurement.about import Environment, Subject

__all__ = [
    "add_benchmarks",
    "add_evaluations",
    "benchmark_content",
    "benchmark_header",
    "benchmark_point",
    "evaluation_content",
    "write_benchmark",
    "write_evaluation",
]

HOST, HOME = "one", "/srv/roundhouse"
LONG_AGO = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
KINDS = (("bf16", "bf16"), ("bf16", "fp8"), ("int4_awq", "bf16"), ("int4_awq", "fp8"))
"""Weights and KV cache; runs take them by turns."""
CPU = Hardware(name="A CPU of tests", kind="cpu", cores=8, total_memory=64 * 2**30, free_memory=48 * 2**30)


def benchmark_header(number: int = 0, **changes: Any) -> BenchmarkHeader:
    """What run ``number`` measures; which engine it is depends on the number alone."""
    weights, kv_cache = KINDS[number % len(KINDS)]
    recipe = {
        "name": f"tiny-{weights}-{kv_cache}",
        "model": "demo:smollm2",
        "target": "torch",
        "role": "aggregated",
        "weights": weights,
        "kv_cache": kv_cache,
        "guard": "tags",
        "seed": 0,
    }
    subject = Subject(
        kind="engine",
        name=str(recipe["name"]),
        model="demo:smollm2",
        url="http://127.0.0.1:9000",
        engine_id=f"{number % len(KINDS):016x}",
        manifest={"id": f"{number % len(KINDS):016x}", "recipe": recipe, "versions": {"torch": "2.9.0"}},
        settings={"guard": "tags", "page_tokens": 16},
    )
    values: dict[str, Any] = {
        "id": f"{0xB00000000000 + number:012x}",
        "began_at": LONG_AGO + timedelta(hours=number),
        "driver": "aiperf",
        "driver_version": "0.13.0",
        "subject": subject,
        "workload": Workload(),
        "concurrencies": (1, 8, 16, 32),
        "repeats": 3,
        "prefill_lengths": (128, 512),
        "seed": 7,
        "command": f"roundhouse bench {recipe['name']} --concurrency 1,8,16,32 --seed 7",
        "environment": Environment(host=HOST, hardware=CPU, versions={"roundhouse": "1.0", "torch": "2.9.0"}, idle_cores=0.1),
    }
    return BenchmarkHeader(**values | changes)


def benchmark_point(draw: random.Random, header: BenchmarkHeader, concurrency: int, repeat: int) -> Point:
    """A point as an engine has it that batches well: throughput grows, and so does the wait."""
    requests = header.workload.requests(concurrency)
    step = 0.004 * (1 + 0.05 * concurrency) * draw.uniform(0.97, 1.03) * (0.7 if "int4_awq" in header.subject.name else 1)
    ttft = [0.02 * (1 + 0.1 * concurrency) * draw.uniform(0.9, 1.4) for _ in range(20)]
    tokens = header.workload.output_tokens
    seconds = -(-requests // concurrency) * (tokens * step + 0.02)
    return Point(
        concurrency=concurrency,
        repeat=repeat,
        began_at=header.began_at + timedelta(seconds=10 * concurrency + repeat),
        duration_s=seconds,
        completed=requests,
        failed={"timeout": 1} if draw.random() < 0.05 else {},
        input_tokens=requests * header.workload.input_tokens,
        output_tokens=requests * tokens,
        tokens_from="usage",
        ttft=percentiles(ttft),
        inter_token=percentiles([step * draw.uniform(0.95, 1.1) for _ in range(20)]),
        end_to_end=percentiles([tokens * step * draw.uniform(0.95, 1.1) + 0.02 for _ in range(20)]),
        engine=EngineCounts(
            kv_pages=512,
            kv_pages_used_mean=4.0 * concurrency,
            kv_pages_used_most=6 * concurrency,
            running_most=concurrency,
            waiting_most=0,
            prompt_tokens=requests * header.workload.input_tokens,
            cached_tokens=0,
            steps=requests * tokens // concurrency,
            preemptions=0,
            tag_checks=requests * tokens // concurrency,
            tag_mismatches=0,
            content_checks=0,
            content_mismatches=0,
        ),
        other_cores=draw.choice((0.02, 0.05, 0.4 if draw.random() < 0.1 else 0.1)),
    )


def benchmark_content(
    number: int = 0,
    *,
    state: RecordState = "finished",
    part: float = 1.0,
    samples: int = 0,
    files: Sequence[tuple[str, bytes]] = (),
    problem: str | None = None,
    **header: Any,
) -> BenchmarkContent:
    """A run with what came of it.

    Args:
        number: which; the same number is the same run.
        state: of it.
        part: which part of its points was measured.
        samples: live ones.
        files: raw ones: name, and content compressed with gzip.
        problem: why it failed.
        header: what is different in it.
    """
    draw = random.Random(number)
    about = benchmark_header(number, **header)
    points = [benchmark_point(draw, about, at, repeat) for at in about.concurrencies for repeat in range(about.repeats)]
    prefill = [
        PrefillPoint(
            input_tokens=length,
            repeat=repeat,
            began_at=about.began_at,
            requests=8,
            ttft=percentiles([length / 4000 * draw.uniform(0.95, 1.05) for _ in range(8)]),
        )
        for length in about.prefill_lengths
        for repeat in range(about.repeats)
    ]
    ended = None if state in ("running", "interrupted") else about.began_at + timedelta(minutes=5)
    return BenchmarkContent(
        header=about,
        state=state,
        ended_at=ended,
        problem=problem,
        points=tuple(points[: round(len(points) * part)]),
        prefill=tuple(prefill if part == 1 else ()),
        samples=tuple(_samples(draw, samples)),
        files=files,
    )


def add_benchmarks(
    session: Session,
    count: int = 1,
    *,
    first: int = 0,
    host: str = HOST,
    home: str = HOME,
    job_id: int | None = None,
    **content: Any,
) -> list[str]:
    """Write down so many runs, the later ones later; returns their ids.

    Args:
        session: a writing transaction.
        count: how many.
        first: number of the first: :func:`benchmark_content` says what that decides.
        host: that has their folders.
        home: that has their folders.
        job_id: that measured them.
        content: for :func:`benchmark_content`.
    """
    ids = []
    for number in range(first, first + count):
        made = benchmark_content(number, **content)
        record_benchmark(session, made, host, home, job_id=job_id)
        ids.append(made.header.id)
    return ids


def _samples(draw: random.Random, count: int) -> Iterator[LiveSample]:
    for second in range(count):
        yield LiveSample(
            at_s=float(second),
            stage=f"{1 if second < count // 2 else 8} at once, repeat 1",
            output_tokens_per_s=draw.uniform(200, 240) * (1 if second < count // 2 else 4),
            running=1 if second < count // 2 else 8,
            waiting=0,
            kv_pages_used=draw.randrange(4, 40),
            completed=second // 2,
        )


def evaluation_content(number: int = 0, *, state: RecordState = "finished", gate: str = "passed", **header: Any) -> Evaluation:
    """Evaluation ``number``, of the same engine as the benchmark with this number.

    Args:
        number: which; the same number is the same evaluation.
        state: of it.
        gate: ``passed``, ``failed``, or ``not measured``, which has no base.
        header: what is different in it.
    """
    draw = random.Random(number)
    of = benchmark_header(number)
    base = benchmark_header(0).subject
    values: dict[str, Any] = {
        "id": f"{0xE00000000000 + number:012x}",
        "began_at": of.began_at,
        "subject": of.subject,
        "base": None if gate == "not measured" else base,
        "tasks": ("perplexity", "arithmetic", "needle"),
        "limit": None,
        "seed": 0,
        "gate_points": 0.8,
        "command": f"roundhouse evaluate {of.subject.name} --against {base.name}",
        "environment": of.environment,
    }
    about = EvaluationHeader(**values | header)
    compared = about.base is not None
    down = -0.05 if gate == "failed" else 0.004
    shares = {"arithmetic": 0.62, "needle": 0.9}
    scores = [
        TaskScore(
            task=task,
            suite="roundhouse",
            metric="accuracy" if task in shares else "perplexity",
            higher_is_better=task in shares,
            is_share=task in shares,
            value=shares.get(task, 18.0) + draw.uniform(0, 0.02),
            stderr=0.01,
            items=200,
            difference=Difference(base=0.6, value=down, low=down - 0.01, high=down + 0.01)
            if compared and task in shares
            else None,
            seconds=12.5,
        )
        for task in about.tasks
    ]
    reasons = {
        "passed": (),
        "failed": ("arithmetic is 5.0 points down, surely between 4.0 and 6.0.",),
        "not measured": ("No share of right answers was compared with a base.",),
    }
    ended = None if state in ("running", "interrupted") else about.began_at + timedelta(minutes=3)
    judged = gate if state == "finished" else "not measured"
    rest: dict[str, Any] = {"unmeasured": ()} if "unmeasured" in Evaluation.model_fields else {}
    return Evaluation(
        header=about,
        state=state,
        ended_at=ended,
        problem="the endpoint went away" if state == "failed" else None,
        scores=tuple(scores if state == "finished" else scores[:1]),
        gate=GateResult(state=judged, limit_points=0.8, reasons=reasons[judged]),
        **rest,
    )


def add_evaluations(
    session: Session,
    count: int = 1,
    *,
    first: int = 0,
    host: str = HOST,
    home: str = HOME,
    job_id: int | None = None,
    **content: Any,
) -> list[str]:
    """Write down so many evaluations, the later ones later; returns their ids. As :func:`add_benchmarks`."""
    ids = []
    for number in range(first, first + count):
        made = evaluation_content(number, **content)
        files = [("items.jsonl", gzip.compress(b'{"task": "arithmetic", "number": 0}\n'))] if made.state == "finished" else []
        record_evaluation(session, made, host, home, job_id=job_id, files=files)
        ids.append(made.header.id)
    return ids


def write_benchmark(home: Home, content: BenchmarkContent) -> RecordWriter:
    """The folder of a run in a home, as whoever measures leaves it before the end: to be ended, and closed, by the test."""
    writer = BenchmarkStore(home).begin(content.header)
    writer.add(POINTS, *content.points)
    writer.add(PREFILL, *content.prefill)
    writer.add(SAMPLES, *content.samples)
    return writer


def write_evaluation(home: Home, content: Evaluation) -> RecordWriter:
    """The folder of an evaluation in a home, as :func:`write_benchmark`."""
    writer = EvaluationStore(home).begin(content.header)
    writer.add(SCORES, *content.scores)
    return writer
