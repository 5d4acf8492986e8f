"""What a cell of the bench says of its circumstances."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cells import Cell, DecodeWindow, Run

from roundhouse.serve.engine.request import Chunk


def cell(*, others: float = 0.0) -> Cell:
    return Cell("Triton", 8, 0, Run(100, 4.0), others)


def test_a_cell_is_noisy_from_a_fifth_of_a_core_on() -> None:
    assert [cell(others=others).noisy for others in (0.0, 0.2, 0.21, 2.0)] == [False, False, True, True]


def test_tokens_a_second_count_the_whole_batch() -> None:
    assert cell().tokens_per_s == 25.0


def chunk(name: str, tokens: int = 1, *, last: bool = False) -> Chunk:
    reason = "length" if last else None
    return Chunk(request_id=name, text="", token_ids=[5] * tokens, prompt_tokens=1, completion_tokens=1, finish_reason=reason)


def test_decoding_is_measured_from_everybody_s_first_token_to_anybody_s_last() -> None:
    window = DecodeWindow(2)
    for now, chunks in enumerate(
        [
            [chunk("a")],
            [chunk("a"), chunk("b")],  # opens here
            [chunk("a"), chunk("b")],
            [chunk("a", last=True), chunk("b")],  # closes here
            [chunk("b", 7)],
        ]
    ):
        assert window.open == (now in (2, 3))
        window.note(chunks, 10.0 + 2.0 * now)
    assert window.tokens_per_s == 4 / 4.0
    assert not window.open


def test_where_not_all_decode_at_once_their_speed_is_not_known() -> None:
    window = DecodeWindow(2)
    window.note([chunk("a", last=True)], 1.0)
    window.note([chunk("b")], 2.0)
    window.note([chunk("b", last=True)], 3.0)
    assert window.tokens_per_s is None
    assert not window.open
