"""One more token for an answer: what ends it, what it says then, and what comes with it."""

from __future__ import annotations

from typing import Any

import pytest

from roundhouse.serve.engine.admission import make_sequence
from roundhouse.serve.engine.progress import append_token, chunk_of
from roundhouse.serve.engine.request import Chunk, Request, SamplingParams, TokenLogprob
from roundhouse.serve.engine.sampling import Choice
from roundhouse.serve.engine.sequence import Sequence
from roundhouse.serve.engine.tokenizer import EngineTokenizer

EOS = 2


def sequence_of(tokenizer: EngineTokenizer, **sampling: Any) -> Sequence:
    request = Request(request_id="r", prompt_ids=[5, 6], sampling=SamplingParams(**{"max_tokens": 50, **sampling}))
    return make_sequence(request, tokenizer, vocab=512, max_seq_len=128, pool_tokens=128)


def letter(tokenizer: EngineTokenizer, text: str) -> int:
    (token,) = tokenizer.backend.encode(text, add_special_tokens=False).ids
    return token


def chunks(tokenizer: EngineTokenizer, ids: list[int], **sampling: Any) -> list[Chunk]:
    """What comes out for these tokens, up to the end of the answer."""
    sequence, out = sequence_of(tokenizer, **sampling), []
    for token in ids:
        out.append(append_token(sequence, Choice(token), tokenizer.eos_ids))
        if out[-1].finish_reason is not None:
            break
    return out


def end(made: list[Chunk]) -> tuple[str, str | None, str | None]:
    """The whole text, and why it ended."""
    return "".join(chunk.text for chunk in made), made[-1].finish_reason, made[-1].stop_reason


def test_a_stop_token_ends_the_text_before_it_and_names_itself(tokenizer: EngineTokenizer) -> None:
    a, b = letter(tokenizer, "a"), letter(tokenizer, "b")
    assert end(chunks(tokenizer, [a, b, a], stop_token_ids=(b,))) == ("a", "stop", str(b))
    assert end(chunks(tokenizer, [a, b, EOS], stop_token_ids=(b,), ignore_eos=True)) == ("a", "stop", str(b))


def test_going_on_past_end_of_sequence_tokens(tokenizer: EngineTokenizer) -> None:
    a = letter(tokenizer, "a")
    assert end(chunks(tokenizer, [a, EOS, a])) == ("a", "stop", str(EOS))
    assert end(chunks(tokenizer, [a, EOS, a], ignore_eos=True, max_tokens=3)) == ("aa", "length", None)
    assert end(chunks(tokenizer, [a, EOS, a], ignore_eos=True, stop_token_ids=(EOS,))) == ("a", "stop", str(EOS))


def test_what_was_held_back_comes_out_before_a_stop_token(tokenizer: EngineTokenizer) -> None:
    a, b, x = (letter(tokenizer, text) for text in "abx")
    made = chunks(tokenizer, [x, a, b], stop=("az",), stop_token_ids=(b,))
    assert [chunk.text for chunk in made] == ["x", "", "a"]
    incomplete = tokenizer.backend.encode("😀", add_special_tokens=False).ids[:-1]
    assert end(chunks(tokenizer, [*incomplete, b], stop_token_ids=(b,))) == (tokenizer.decode(incomplete), "stop", str(b))


def test_a_stop_string_does_not_end_an_answer_before_min_tokens(tokenizer: EngineTokenizer) -> None:
    a, b, x = (letter(tokenizer, text) for text in "abx")
    ids = [a, b, x, a, b, x]
    assert end(chunks(tokenizer, ids, stop=("ab",))) == ("", "stop", "ab")
    assert end(chunks(tokenizer, ids, stop=("ab",), min_tokens=2)) == ("abx", "stop", "ab")
    assert end(chunks(tokenizer, ids, stop=("ab",), min_tokens=6, max_tokens=6)) == ("abxabx", "length", None)


def test_a_stop_string_that_the_last_token_completes_counts_before_the_length(tokenizer: EngineTokenizer) -> None:
    a, b = letter(tokenizer, "a"), letter(tokenizer, "b")
    assert end(chunks(tokenizer, [a, b], stop=("ab",), max_tokens=2)) == ("", "stop", "ab")
    assert end(chunks(tokenizer, [a, b], max_tokens=2)) == ("ab", "length", None)


def test_log_probabilities_come_with_the_chunk_when_asked_for(tokenizer: EngineTokenizer) -> None:
    a, b = letter(tokenizer, "a"), letter(tokenizer, "b")
    sequence = sequence_of(tokenizer, logprobs=1, stop_token_ids=(b,))
    first, last = (TokenLogprob(token, -0.5, [(token, -0.5)]) for token in (a, b))
    assert append_token(sequence, Choice(a, first), tokenizer.eos_ids).logprobs == [first]
    assert append_token(sequence, Choice(b, last), tokenizer.eos_ids).logprobs == [last]
    assert chunks(tokenizer, [a])[0].logprobs is None


def test_a_chunk_tells_whose_it_is_and_how_many_tokens_there_were(tokenizer: EngineTokenizer) -> None:
    sequence = sequence_of(tokenizer)
    sequence.index, sequence.cached_tokens = 3, 1
    sequence.tokens += [9, 9, 9]
    assert chunk_of(sequence, [9], "x", "stop", "2") == Chunk(
        request_id="r",
        index=3,
        text="x",
        token_ids=[9],
        prompt_tokens=2,
        cached_tokens=1,
        completion_tokens=3,
        finish_reason="stop",
        stop_reason="2",
    )


@pytest.mark.parametrize("min_tokens", [0, 1, 3, 7])
def test_joined_texts_are_the_full_decode(tokenizer: EngineTokenizer, min_tokens: int) -> None:
    ids = tokenizer.backend.encode("naïve 😀 text\nwith\n\nlines", add_special_tokens=False).ids
    made = chunks(tokenizer, ids, stop=("\n\n\n", "😀😀"), min_tokens=min_tokens, max_tokens=len(ids))
    assert end(made) == (tokenizer.decode(ids), "length", None)
    stopped = chunks(tokenizer, ids, stop=("\n\n",), min_tokens=min_tokens)
    assert end(stopped) == ("naïve 😀 text\nwith", "stop", "\n\n")
