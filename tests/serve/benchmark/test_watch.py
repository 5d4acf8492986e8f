"""What is watched while a point is measured."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from benchmarking import ScriptedDriver, scripted_subject

from roundhouse.errors import ServeError
from roundhouse.serve.benchmark import watch as room
from roundhouse.serve.benchmark.points import LiveSample
from roundhouse.serve.benchmark.watch import Watch
from roundhouse.serve.measurement.gpus import GpuReading
from roundhouse.serve.triton.samples import Sample


def sample(**fields: Any) -> Sample:
    zero = dict.fromkeys(Sample.model_fields, 0)
    return Sample.model_validate(zero | {"guard_alive": True, "tokens_come_out": True} | fields)


class Counting:
    """Tells one sample each time it is asked, the last one for ever."""

    def __init__(self, *samples: Sample) -> None:
        self._coming = list(samples)

    def take(self) -> list[Sample]:
        return [self._coming.pop(0) if len(self._coming) > 1 else self._coming[0]]


class OneGpu:
    names = ("gpu",)
    driver = None

    def read(self) -> tuple[GpuReading, ...]:
        return (GpuReading(1, 2.0, 0.5),)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_PERIOD_S", 0.01)
    monkeypatch.setattr(room, "_SETTLED_POLL_S", 0.001)


def watch(told: Any, **changes: Any) -> Watch:
    subject = replace(scripted_subject("a", ScriptedDriver("a", [])), **changes)
    return Watch(subject, told, stage="8 at once", began=time.monotonic(), completed=5)


def test_samples_begin_before_and_end_when_nothing_runs_any_more() -> None:
    busy = sample(running=3, waiting=1, pages_used=7, generated_tokens=30)
    counts = Counting(sample(), busy, busy, busy, sample(generated_tokens=90))
    seen: list[LiveSample] = []
    enough = threading.Event()

    def told(live: LiveSample) -> None:
        seen.append(live)
        if len(seen) == 2:
            enough.set()

    with watch(told, counts=counts, gpus=OneGpu(), families=()) as watching:
        enough.wait()
    assert watching.samples[0] == sample()
    assert busy in watching.samples
    assert watching.samples[-1].generated_tokens == 90
    assert (seen[0].stage, seen[0].running, seen[0].waiting, seen[0].kv_pages_used, seen[0].completed) == (
        "8 at once",
        3,
        1,
        7,
        5,
    )
    assert seen[0].output_tokens_per_s is None, "a rate needs two moments"
    assert seen[1].output_tokens_per_s == 0.0
    assert seen[0].at_s < seen[1].at_s
    assert len(watching.readings) >= 4
    assert watching.other_cores is not None


def test_an_endpoint_elsewhere_tells_nothing_and_is_watched_all_the_same() -> None:
    seen: list[LiveSample] = []
    enough = threading.Event()

    def told(live: LiveSample) -> None:
        seen.append(live)
        enough.set()

    with watch(told) as watching:
        enough.wait()
    assert (watching.samples, watching.other_cores) == ([], None)
    assert (seen[0].running, seen[0].output_tokens_per_s) == (None, None)


def test_a_disk_that_is_full_comes_out_of_it() -> None:
    failed = threading.Event()

    def told(live: LiveSample) -> None:
        failed.set()
        raise ServeError("a record cannot be written")

    with pytest.raises(ServeError, match="cannot be written"), watch(told):
        failed.wait()


def test_what_goes_wrong_inside_is_not_hidden_and_not_waited_for() -> None:
    with pytest.raises(KeyError), watch(lambda live: None, counts=Counting(sample(running=1))):
        raise KeyError("x")
