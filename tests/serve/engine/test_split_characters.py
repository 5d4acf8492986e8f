"""A character whose bytes are split over two tokens, through the whole loop: whole, or as far as it came when it ends."""

from __future__ import annotations

import pytest
from driving import request, scripted_loop, serve, text
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from roundhouse.serve.engine.byte_letters import byte_letters
from roundhouse.serve.engine.tokenizer import EngineTokenizer

FIRST, SECOND, LETTER, NEWLINE = range(4)
SPELLED = (b"\xf0\x9f", b"\x98\x80", b"a", b"\n")


@pytest.fixture(scope="module")
def halves() -> EngineTokenizer:
    """A byte-level tokenizer whose first two tokens are the halves of one character."""
    letters = byte_letters()
    vocab = {"".join(letters[byte] for byte in spelled): token for token, spelled in enumerate(SPELLED)}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return EngineTokenizer(tokenizer, frozenset())


@pytest.mark.parametrize(
    ("count", "pieces"),
    [
        (1, ["a"]),
        (2, ["a", "\ufffd"]),  # the budget ends in mid-character
        (3, ["a", "", "😀"]),
        (4, ["a", "", "😀", "a"]),
        (5, ["a", "", "😀", "a", "\ufffd"]),
    ],
)
def test_no_half_is_shown_before_the_end(halves: EngineTokenizer, count: int, pieces: list[str]) -> None:
    loop, _ = scripted_loop(halves, follow={SECOND: LETTER, LETTER: FIRST, FIRST: SECOND})
    outputs = serve(loop, request("r", [SECOND], max_tokens=count))["r"]
    assert [output.text for output in outputs] == pieces
    assert text(outputs) == halves.decode([token for output in outputs for token in output.token_ids])
    assert outputs[-1].finish_reason == "length"


def test_a_half_that_is_no_part_of_a_character_is_shown_with_what_follows(halves: EngineTokenizer) -> None:
    loop, _ = scripted_loop(halves, follow={LETTER: FIRST, FIRST: NEWLINE, NEWLINE: LETTER})
    outputs = serve(loop, request("r", [LETTER], max_tokens=3))["r"]
    assert text(outputs) == "\ufffd\na"
