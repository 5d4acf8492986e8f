"""What an engine counted during a point."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from driving import request, scripted_loop

from roundhouse.serve.benchmark.counts import NO_COUNTS, TritonCounts, engine_counts, pool_pages, sample_of_status
from roundhouse.serve.engine.tokenizer import EngineTokenizer
from roundhouse.serve.triton.samples import Sample


def sample(**fields: Any) -> Sample:
    zero = dict.fromkeys(Sample.model_fields, 0)
    return Sample.model_validate(zero | {"guard_alive": True, "tokens_come_out": True, "pages_free": 90} | fields)


def test_gauges_are_of_the_time_in_which_something_ran() -> None:
    counts = engine_counts(
        [
            sample(),
            sample(running=1, pages_used=10, pages_free=80),
            sample(running=4, waiting=3, pages_used=30, pages_free=50, pages_cached=10),
            sample(pages_cached=20, pages_free=70),
        ]
    )
    assert counts is not None
    assert (counts.kv_pages, counts.kv_pages_used_mean, counts.kv_pages_used_most) == (90, 20.0, 30)
    assert (counts.running_most, counts.waiting_most) == (4, 3)


def test_counters_are_differences_and_survive_a_new_engine_process() -> None:
    before = sample(steps=100, prompt_tokens=1000, tag_checks=100, preemptions=3)
    counts = engine_counts([before, sample(steps=160, prompt_tokens=1500, tag_checks=7, preemptions=3)])
    assert counts is not None
    assert (counts.steps, counts.prompt_tokens, counts.tag_checks, counts.preemptions) == (60, 500, 7, 0)


def test_one_moment_is_no_span() -> None:
    assert engine_counts([]) is None
    assert engine_counts([sample()]) is None
    assert NO_COUNTS.take() == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/metrics", "http://[broken/metrics"])
def test_metrics_that_are_away_are_no_problem(url: str) -> None:
    assert TritonCounts(url, "m").take() == []


class Telling:
    """Answers in turn, and the last one for ever."""

    def __init__(self, *answers: list[Sample]) -> None:
        self.answers = list(answers)

    def take(self) -> list[Sample]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def test_the_size_of_a_pool_is_asked_for_until_the_engine_tells_it() -> None:
    away: list[Sample] = []
    not_yet_reported = [sample(pages_free=0)]
    assert pool_pages(Telling(away, not_yet_reported, [sample(pages_used=10)]), threading.Event()) == 100
    assert pool_pages(Telling([sample()], away), threading.Event()) == 90


def test_nobody_is_asked_for_a_pool_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    stopped.set()
    assert pool_pages(Telling([]), stopped) is None
    assert pool_pages(NO_COUNTS, threading.Event()) is None
    monkeypatch.setattr("roundhouse.serve.benchmark.counts._TOLD_WITHIN_S", 0.0)
    assert pool_pages(Telling([]), threading.Event()) is None


def test_the_loop_says_the_same_as_its_metrics(tokenizer: EngineTokenizer) -> None:
    loop, _ = scripted_loop(tokenizer, pages=64)
    loop.submit(request("a", [7] * 20, max_tokens=4))
    loop.step()
    said = sample_of_status(loop.status())
    assert (said.running, said.pages, said.pages_used, said.steps, said.prompt_tokens) == (1, 64, 3, 1, 20)
    assert (said.generated_tokens, said.ttft_count, said.tag_checks) == (1, 1, 1)
