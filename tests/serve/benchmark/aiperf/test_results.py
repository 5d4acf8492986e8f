"""What becomes of aiperf's records. ``data/`` holds real ones: of endpoints that answered in every way there is."""

from __future__ import annotations

import json
import math
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.benchmark.aiperf.failures import kind_of_failure
from roundhouse.serve.benchmark.aiperf.results import Records, read_records
from roundhouse.serve.benchmark.failure_words import WORDS_OF_EXCEPTIONS
from roundhouse.serve.benchmark.measuring import point_of

DATA = Path(__file__).parent / "data"


def record(*, error: dict[str, Any] | None = None, phase: str = "profiling", **metrics: float) -> dict[str, Any]:
    about = {"request_start_ns": 5_000_000_000, "request_end_ns": 7_000_000_000, "benchmark_phase": phase}
    values = {name: {"value": value, "unit": "?"} for name, value in metrics.items()}
    return {"metadata": about, "metrics": values, "error": error}


def answered(**metrics: float) -> dict[str, Any]:
    return record(**{"time_to_first_token": 250.0, "request_latency": 1750.0, **metrics})


def test_every_way_of_failing_is_counted_apart_and_in_no_latency() -> None:
    requests = read_records(DATA / "mixed" / "profile_export.jsonl").requests(count_here=False)
    point = point_of(requests, concurrency=4, repeat=0, began_at=datetime.now(UTC), tokens_from="usage")
    assert point.failed == {
        "empty answer": 4,  # nothing but a role, or nothing at all
        "http 429": 2,
        "http 500": 2,
        "unfinished answer": 4,  # an error in the middle of a stream, and a stream that was never counted
        "disconnected": 2,
        "timeout": 2,
    }
    assert point.completed == 4
    assert point.ttft is not None
    assert point.ttft.count == 4
    assert point.ttft.p50 > 0


def test_chunks_of_several_tokens_are_counted_as_the_server_counts_them() -> None:
    requests = read_records(DATA / "mixed" / "profile_export.jsonl").requests(count_here=False)
    assert [each.output_tokens for each in requests if each.outcome == "completed"] == [8, 8, 8, 8]


def test_what_the_client_cancelled_is_neither_done_nor_failed() -> None:
    requests = read_records(DATA / "cancelled" / "profile_export.jsonl").requests(count_here=False)
    assert Counter(each.outcome for each in requests) == {"completed": 9, "cancelled": 3}
    assert all(each.ended > each.began >= 0 for each in requests)


def test_times_are_of_content_and_on_the_clock_of_the_first_request() -> None:
    (request,) = Records([answered(usage_completion_tokens=4, usage_prompt_tokens=9)]).requests(count_here=False)
    assert (request.began, request.first_token, request.ended) == (0.0, 0.25, 1.75)
    assert (request.input_tokens, request.output_tokens) == (9, 4)


def test_warm_up_does_not_count() -> None:
    records = Records([record(phase="warmup", time_to_first_token=1.0), answered(usage_completion_tokens=4)])
    assert len(records) == 1
    assert records.answered == records.counted == 1


def test_the_clients_count_is_taken_where_it_is_asked_for() -> None:
    records = Records([answered(output_sequence_length=6, input_sequence_length=11)])
    assert (records.answered, records.counted) == (1, 0)
    (request,) = records.requests(count_here=True)
    assert (request.outcome, request.input_tokens, request.output_tokens) == ("completed", 11, 6)


def test_no_tokens_are_no_answer() -> None:
    requests = Records([answered(usage_completion_tokens=0), record()]).requests(count_here=False)
    assert [(each.outcome, each.error) for each in requests] == [("failed", "empty answer")] * 2


def test_a_metric_that_is_no_number_is_none() -> None:
    (request,) = Records([answered(usage_completion_tokens=4, usage_prompt_tokens=math.nan)]).requests(count_here=False)
    assert (request.outcome, request.input_tokens) == ("completed", 0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "Too Many Requests", "code": 429, "message": "whatever the server says"}, "http 429"),
        ({"type": "Service Unavailable", "code": 503, "message": ""}, "http 503"),
        ({"type": "SSEResponseError", "code": 502, "message": "x"}, "error in the stream"),
        ({"type": "TimeoutError", "message": "TimeoutError()"}, "timeout"),
        ({"type": "ClientConnectorError", "message": "refused"}, "unreachable"),
        ({"type": "ServerDisconnectedError", "message": "x"}, "disconnected"),
        ({"type": "NeverSeenError", "code": 0, "message": "x"}, "NeverSeenError"),
        ({"message": "x"}, "unknown"),
    ],
)
def test_kinds_of_failures_have_short_stable_names(error: dict[str, Any], kind: str) -> None:
    assert kind_of_failure(error) == kind


def test_a_missing_file_and_one_of_something_else_are_named(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"nothing\.jsonl cannot be read"):
        read_records(tmp_path / "nothing.jsonl")
    for content in (
        "{",
        "[]",
        '{"metadata": {"request_start_ns": "1"}}',
        json.dumps({"metadata": {}}),
        json.dumps(record() | {"error": "x"}),
    ):
        (tmp_path / "wrong.jsonl").write_text(content, encoding="utf-8")
        with pytest.raises(ServeError, match=r"wrong.jsonl is not aiperf's records"):
            read_records(tmp_path / "wrong.jsonl")


def test_the_documentation_names_every_kind() -> None:
    text = (Path(__file__).parents[4] / "docs" / "load.md").read_text(encoding="utf-8")
    assert [kind for kind in {*WORDS_OF_EXCEPTIONS.values(), "unfinished answer"} if f"| `{kind}` |" not in text] == []
