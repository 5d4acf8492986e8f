from __future__ import annotations

from typing import Any

import pytest

from roundhouse.serve.engine.request import Chunk, Failure, FinishReason
from roundhouse.serve.triton.replies import Reply


def chunk(text: str, tokens: int, finish_reason: FinishReason | None = None, stop_reason: str | None = None) -> Chunk:
    return Chunk(
        request_id="r",
        text=text,
        token_ids=[tokens],
        prompt_tokens=3,
        completion_tokens=tokens,
        finish_reason=finish_reason,
        stop_reason=stop_reason,
    )


PIECES = [chunk("on", 1), chunk("", 2), chunk("ce", 3), chunk("", 4, "stop", "upon")]


def test_streaming_sends_each_piece_that_has_text_and_then_the_end(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=True)
    for piece in PIECES:
        reply.take(piece)
    sent = [response.tensors for response in sender.responses]
    assert sent == [
        {"text_output": b"on", "prompt_tokens": 3, "completion_tokens": 1},
        {"text_output": b"ce", "prompt_tokens": 3, "completion_tokens": 3},
        {
            "text_output": b"",
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "finish_reason": b"stop",
            "stop_reason": b"upon",
        },
    ]
    assert sender.final


def test_one_shot_sends_the_whole_text_once(triton: Any) -> None:
    sender = triton.Sender()
    reply = Reply(triton, sender, streaming=False)
    for piece in PIECES:
        reply.take(piece)
    assert [response.tensors["text_output"] for response in sender.responses] == [b"once"]
    assert sender.final


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_request", "invalid_arg"),
        ("unavailable", "unavailable"),
        ("cancelled", "cancelled"),
        ("page_tag_mismatch", "internal"),
        ("internal", "internal"),
    ],
)
def test_a_failure_ends_the_request_with_its_code_in_front(triton: Any, code: Any, kind: str) -> None:
    sender = triton.Sender()
    Reply(triton, sender, streaming=True).take(Failure(request_id="r", code=code, message="why"))
    assert sender.responses[0].error.text == f"[{code}] why"
    assert sender.responses[0].error.kind == kind
    assert sender.final


def test_a_cancelled_request_ends_as_cancelled(triton: Any) -> None:
    sender = triton.Sender()
    Reply(triton, sender, streaming=True).take(chunk("", 2, "cancelled"))
    assert sender.responses[0].error.kind == "cancelled"
    assert sender.final
