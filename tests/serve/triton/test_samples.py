"""What is read from Triton's metrics, and how fast it grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from roundhouse.console.deployments.records import Rates, TimedSample
from roundhouse.serve.triton.metrics import METRICS
from roundhouse.serve.triton.samples import Sample, sample_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def text(model: str = "m", **values: float) -> str:
    """Every metric of a model as Triton shows it: its place in the table as its value, where none is given."""
    lines = []
    for place, (name, _, kind, what) in enumerate(METRICS):
        if kind == "histogram":
            lines += [f'{name}_bucket{{model="{model}",le="0.1"}} 1', f'{name}_sum{{model="{model}"}} 2.5']
            lines += [f'{name}_count{{model="{model}"}} 5']
        else:
            lines += [f"# HELP {name} {what}", f'{name}{{model="{model}"}} {values.get(name, place)}']
    return "\n".join(lines) + "\n"


def sample(**values: float) -> Sample:
    return Sample.model_validate(dict.fromkeys(Sample.model_fields, 0) | values)


def test_every_metric_is_read_under_its_own_name() -> None:
    found = sample_of(text("other") + text(roundhouse_kv_pages_free=77, roundhouse_guard_alive=1), "m")
    assert found is not None
    places = {name: place for place, (name, *_) in enumerate(METRICS)}
    assert found.running == places["roundhouse_requests_running"]
    assert found.pages_free == 77
    assert found.guard_alive
    assert found.pages_quarantined == places["roundhouse_kv_pages_quarantined"]
    assert found.tag_mismatches == places["roundhouse_tag_mismatches_total"]
    assert (found.ttft_sum, found.ttft_count) == (2.5, 5)
    values = [value for name, value in found if name not in ("ttft_sum", "ttft_count", "guard_alive", "tokens_come_out")]
    assert len(set(values)) == len(values)


def test_metrics_that_do_not_know_the_model_say_nothing() -> None:
    assert sample_of(text("other"), "m") is None
    assert sample_of("", "m") is None


@pytest.mark.parametrize("value", ["garbage", "NaN", "1e400", "0.5", "-"])
def test_numbers_that_are_none_say_nothing(value: str) -> None:
    assert sample_of(f'roundhouse_engine_up{{model="m"}} 1\nroundhouse_steps_total{{model="m"}} {value}\n', "m") is None


def test_rates_are_differences() -> None:
    first = TimedSample(at=NOW, values=sample(generated_tokens=100, ttft_sum=1.0, ttft_count=2, steps=1))
    last = TimedSample(
        at=NOW + timedelta(seconds=10), values=sample(generated_tokens=600, ttft_sum=2.0, ttft_count=4, steps=9, tag_checks=20)
    )
    rates = Rates.between(first, last)
    assert rates is not None
    assert (rates.generated_tokens, rates.prompt_tokens, rates.tag_checks, rates.ttft_s) == (50.0, 0.0, 2.0, 0.5)


def test_there_are_no_rates_over_a_restart_or_no_time() -> None:
    first = TimedSample(at=NOW, values=sample(steps=5))
    assert Rates.between(first, first) is None
    assert Rates.between(first, TimedSample(at=NOW + timedelta(seconds=2), values=sample(steps=1))) is None
    calm = Rates.between(first, TimedSample(at=NOW + timedelta(seconds=2), values=sample(steps=5)))
    assert calm is not None
    assert calm.ttft_s is None
