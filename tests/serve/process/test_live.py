from __future__ import annotations

from roundhouse.serve.engine.request import Chunk, Failure, FinishReason, Output, Request, SamplingParams
from roundhouse.serve.process.live import LiveRequests


def chunk(index: int, reason: FinishReason | None) -> Chunk:
    return Chunk(request_id="r", index=index, text="", token_ids=[], prompt_tokens=1, completion_tokens=1, finish_reason=reason)


def ignore(output: Output) -> None:
    pass


def live(answers: int) -> LiveRequests:
    found = LiveRequests()
    found.add(Request(request_id="r", prompt="x", sampling=SamplingParams(n=answers)), ignore)
    return found


def test_a_request_lives_until_its_last_answer_has_ended() -> None:
    requests = live(3)
    for output in (chunk(1, "stop"), chunk(0, None), chunk(0, "length")):
        assert requests.receiver(output) is ignore
        assert "r" in requests
    assert requests.receiver(chunk(2, "cancelled")) is ignore
    assert "r" not in requests
    assert requests.receiver(chunk(2, "cancelled")) is None


def test_a_failure_ends_all_answers() -> None:
    requests = live(3)
    assert requests.receiver(Failure(request_id="r", code="deadline", message="late")) is ignore
    assert len(requests) == 0


def test_an_impossible_number_of_answers_still_waits_for_its_refusal() -> None:
    requests = live(-1)
    assert requests.receiver(chunk(0, None)) is ignore
    assert requests.receiver(Failure(request_id="r", code="invalid_request", message="n is -1")) is ignore
    assert "r" not in requests


def test_clearing_says_who_was_there() -> None:
    requests = live(1)
    assert requests.clear() == {"r": ignore}
    assert "r" not in requests
