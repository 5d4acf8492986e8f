from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from roundhouse.serve.engine.status import Histogram, Status
from roundhouse.serve.triton.metrics import (
    ENGINE_UP,
    GUARD_ALIVE,
    METRICS,
    PAGES,
    STATUS_TIME,
    TOKENS_COME_OUT,
    EngineMetrics,
)


def status(**counts: Any) -> Status:
    fields = (field.name for field in msgspec.structs.fields(Status) if field.required)
    return Status(**dict.fromkeys(fields, 0) | counts)


def shown(triton: Any) -> dict[str, dict[str, float]]:
    """Values by metric name and label ``le``."""
    return {family.name: {le: metric.value for le, metric in family.metrics.items()} for family in triton.MetricFamily.made}


def value(triton: Any, name: str) -> float:
    return shown(triton)[name][""]


def test_every_count_of_a_report_is_shown(triton: Any) -> None:
    counts = {field: number for number, (_, field, kind, _) in enumerate(METRICS, 1) if field and kind != "histogram"}
    EngineMetrics(triton, "m").update(status(**counts))
    assert {field for _, field, _, _ in METRICS if field} == set(Status.__struct_fields__) - {"guard"}  # a word, not a number
    for name, field, kind, _ in METRICS:
        if field and kind != "histogram":
            assert value(triton, name) == counts[field]
    assert set(PAGES) == {name for name, field, _, _ in METRICS if field and field.startswith("pages_")}


def test_counters_go_on_when_the_engine_process_starts_again(triton: Any) -> None:
    metrics = EngineMetrics(triton, "m")
    metrics.update(status(tokens_out=5, pages_used=3))
    metrics.update(status(tokens_out=8, pages_used=1))
    metrics.update(status(tokens_out=2, pages_used=0))  # a fresh engine process counts from 0
    assert value(triton, "roundhouse_generated_tokens_total") == 10
    assert value(triton, "roundhouse_kv_pages_used") == 0


def test_histograms_are_cumulative_counters_by_upper_bound_with_sum_and_count(triton: Any) -> None:
    metrics = EngineMetrics(triton, "m")
    metrics.update(status())
    assert not any(name.startswith("roundhouse_ttft") for name in shown(triton))  # nothing to show yet
    metrics.update(status(ttft=Histogram(bounds=(0.25, 2.0), counts=(3, 2, 1), total=9.5)))
    metrics.update(status(ttft=Histogram(bounds=(0.25, 2.0), counts=(4, 2, 2), total=20.0)))
    assert shown(triton)["roundhouse_ttft_seconds_bucket"] == {"0.25": 4, "2": 6, "+Inf": 8}
    assert value(triton, "roundhouse_ttft_seconds_count") == 8
    assert value(triton, "roundhouse_ttft_seconds_sum") == 20
    metrics.update(status(ttft=Histogram(bounds=(0.25, 2.0), counts=(1, 0, 0), total=0.5)))  # a fresh engine process
    assert shown(triton)["roundhouse_ttft_seconds_bucket"] == {"0.25": 5, "2": 7, "+Inf": 9}
    assert value(triton, "roundhouse_ttft_seconds_sum") == 20.5


def test_only_what_changed_travels_to_the_server(triton: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = EngineMetrics(triton, "m")
    report = status(tokens_out=5, running=2, ttft=Histogram(bounds=(1.0,), counts=(3, 2), total=9.5))
    metrics.update(report)
    calls: list[float] = []
    monkeypatch.setattr(triton.Metric, "increment", lambda self, by: calls.append(by))
    monkeypatch.setattr(triton.Metric, "set", lambda self, to: calls.append(to))
    monkeypatch.setattr(time, "time", lambda: 7.0)
    metrics.update(report)
    assert calls == [7.0]  # the time of the report


def test_they_say_whether_the_engine_is_up_and_when_it_last_reported(triton: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "time", lambda: now)
    metrics = EngineMetrics(triton, "m")
    assert value(triton, ENGINE_UP) == 0
    metrics.set_up(True)
    assert (value(triton, ENGINE_UP), value(triton, STATUS_TIME), value(triton, TOKENS_COME_OUT)) == (1, 100, 1)
    now = 101.0
    metrics.update(status(), stuck=True)
    assert (value(triton, ENGINE_UP), value(triton, STATUS_TIME), value(triton, TOKENS_COME_OUT)) == (1, 101, 0)
    now = 102.0
    metrics.set_up(False)
    assert (value(triton, ENGINE_UP), value(triton, STATUS_TIME), value(triton, TOKENS_COME_OUT)) == (0, 101, 1)


def test_they_say_when_steps_ran_without_the_page_check_until_there_is_a_fresh_engine_process(triton: Any) -> None:
    metrics = EngineMetrics(triton, "m")
    assert value(triton, GUARD_ALIVE) == 1
    metrics.set_up(True)
    metrics.update(status(), unguarded=True)
    assert (value(triton, GUARD_ALIVE), value(triton, TOKENS_COME_OUT)) == (0, 1)
    metrics.set_up(False)
    assert value(triton, GUARD_ALIVE) == 1
    metrics.update(status())
    assert value(triton, GUARD_ALIVE) == 1
