"""Points that come from elsewhere: what they say has to be possible."""

from __future__ import annotations

from typing import Any

import pytest
from benchmark_runs import latency, made_point, made_prefill
from pydantic import ValidationError

from roundhouse.serve.benchmark.points import PrefillPoint


@pytest.mark.parametrize(
    "changes",
    [
        {"duration_s": 0.0},
        {"duration_s": 1e-300},  # its speed would be infinite
        {"duration_s": 1e9},
        {"output_tokens": 10**400},
        {"concurrency": 2**31},
        {"failed": {"timeout": -1}},
        {"completed": -1},
        {"ttft": {**latency(1.0).model_dump(), "p50": float("nan")}},
    ],
)
def test_numbers_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        made_point(**changes)


def test_a_prompt_that_was_read_in_no_time_has_no_speed() -> None:
    point = made_prefill()
    assert point.tokens_per_s == pytest.approx(1000.0)
    timeless = PrefillPoint.model_validate({**point.model_dump(), "ttft": latency(0.0)})
    assert timeless.tokens_per_s is None
