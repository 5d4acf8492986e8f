from __future__ import annotations

import json
from typing import Any

import pytest

from roundhouse.serve.engine.request import Chunk, Failure, FinishReason, TokenLogprob
from roundhouse.serve.triton.replies import Reply
from roundhouse.serve.triton.tensors import Returns


def chunk(
    text: str, tokens: int, finish_reason: FinishReason | None = None, stop_reason: str | None = None, *, index: int = 0
) -> Chunk:
    return Chunk(
        request_id="r",
        index=index,
        text=text,
        token_ids=[tokens],
        prompt_tokens=3,
        cached_tokens=2,
        completion_tokens=tokens,
        logprobs=[TokenLogprob(tokens, -0.5, [(tokens, -0.5), (9, -2.0)])],
        finish_reason=finish_reason,
        stop_reason=stop_reason,
    )


PIECES = [chunk("on", 1), chunk("", 2), chunk("ce", 3), chunk("", 4, "stop", "upon")]
COUNTS = {"index": [0], "prompt_tokens": [3], "cached_tokens": [2]}


def sent(sender: Any) -> list[dict[str, Any]]:
    return [response.tensors for response in sender.responses]


def test_streaming_sends_each_piece_that_has_text_and_then_the_end(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True)
    for piece in PIECES:
        assert not reply.ended
        reply.take(piece)
    assert reply.ended
    assert sent(sender) == [
        COUNTS | {"text_output": [b"on"], "completion_tokens": [1], "output_ids": [1]},
        COUNTS | {"text_output": [b"ce"], "completion_tokens": [3], "output_ids": [2, 3]},
        COUNTS
        | {
            "text_output": [b""],
            "completion_tokens": [4],
            "output_ids": [4],
            "finish_reason": [b"stop"],
            "stop_reason": [b"upon"],
        },
    ]
    assert sender.final


def test_one_shot_sends_the_whole_text_once(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=False)
    for piece in PIECES:
        reply.take(piece)
    (answer,) = sent(sender)
    assert answer["text_output"] == [b"once"]
    assert answer["output_ids"] == [1, 2, 3, 4]
    assert sender.final


MIXED = [
    chunk("a", 1),
    chunk("x", 1, index=1),
    chunk("y", 2, "length", index=1),
    chunk("b", 2),
    chunk("", 3, "stop", "2"),
]


def test_each_response_of_a_stream_is_about_one_answer(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True, answers=2)
    for piece in MIXED:
        assert not sender.final
        reply.take(piece)
    assert sender.final
    said = [(piece["index"], piece["text_output"], piece.get("finish_reason")) for piece in sent(sender)]
    assert said == [
        ([0], [b"a"], None),
        ([1], [b"x"], None),
        ([1], [b"y"], [b"length"]),
        ([0], [b"b"], None),
        ([0], [b""], [b"stop"]),
    ]


def test_one_shot_sends_every_answer_in_one_response(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=False, answers=2)
    for piece in MIXED:
        assert sender.responses == []
        reply.take(piece)
    assert sent(sender) == [
        {
            "text_output": [b"ab", b"xy"],
            "index": [0, 1],
            "prompt_tokens": [3],
            "cached_tokens": [2, 2],
            "completion_tokens": [3, 2],
            "output_ids": [1, 2, 3, 1, 2],
            "finish_reason": [b"stop", b"length"],
            "stop_reason": [b"2", b""],
        }
    ]
    assert sender.final


def test_probabilities_are_sent_when_asked_for(triton: Any) -> None:
    sender = triton.Sender()
    returns = Returns(logprobs=True, cumulative_logprob=True, log_probs=True)
    reply = Reply(triton, sender, streaming=True, returns=returns)
    for piece in PIECES:
        reply.take(piece)
    first, second, last = sent(sender)
    assert [piece["cumulative_logprob"] for piece in (first, second, last)] == [[-0.5], [-1.5], [-2.0]]
    assert second["cum_log_probs"] == [-1.5]
    assert second["output_log_probs"] == [-0.5, -0.5]
    (text,) = second["logprobs"]
    assert json.loads(text)[1] == {"token_id": 3, "logprob": -0.5, "top": [[3, -0.5], [9, -2.0]]}


def test_reasons_are_left_out_when_not_wanted(triton: Any) -> None:
    sender = triton.Sender()
    Reply(triton, sender, streaming=False, returns=Returns(finish_reason=False, stop_reason=False)).take(PIECES[-1])
    assert {"finish_reason", "stop_reason"} & set(sent(sender)[0]) == set()
    assert sender.final


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_request", "invalid_arg"),
        ("unavailable", "unavailable"),
        ("overloaded", "unavailable"),
        ("cancelled", "cancelled"),
        ("deadline", "cancelled"),
        ("page_tag_mismatch", "internal"),
        ("page_content_mismatch", "internal"),
        ("internal", "internal"),
    ],
)
def test_a_failure_ends_the_request_with_its_code_in_front(triton: Any, code: Any, kind: str) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True, answers=2)
    reply.take(Failure(request_id="r", code=code, message="why"))
    assert sender.responses[0].error.text == f"[{code}] why"
    assert sender.responses[0].error.kind == kind
    assert sender.final
    assert reply.ended


def test_a_cancelled_request_ends_as_cancelled_once_all_its_answers_have(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True, answers=3)
    reply.take(chunk("done", 2, "length", index=1))
    reply.take(chunk("", 2, "cancelled"))
    assert not sender.final
    reply.take(chunk("", 2, "cancelled", index=2))
    assert sender.responses[-1].error.kind == "cancelled"
    assert sender.final


def test_a_sender_is_never_asked_again_once_the_last_response_has_left(triton: Any) -> None:
    """The real one would take the whole server down."""
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True)
    sender.gone = True
    assert reply.cancelled
    reply.take(chunk("", 2, "cancelled"))
    assert not reply.cancelled
