"""Echoed tokens are laid onto the text that was sent: what begins a document, characters in pieces, and nonsense."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.errors import ServeError
from roundhouse.serve.accuracy.echo import ends_of
from roundhouse.serve.accuracy.endpoint_answers import likelihood_of, read_tokens
from roundhouse.serve.accuracy.scorer import Continuation

BEGIN = "<|begin_of_text|>"


def answer(tokens: list[str], logprobs: list[float | None]) -> dict[str, object]:
    """As vLLM sends it: offsets add up what is printed, from the very first token."""
    offsets = [sum(map(len, tokens[:place])) for place in range(len(tokens))]
    tops = [None if logprob is None else {token: logprob} for token, logprob in zip(tokens, logprobs, strict=True)]
    found = {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": tops, "text_offset": offsets}
    return {"choices": [{"text": "", "logprobs": found}]}


def test_a_token_that_begins_the_document_moves_nothing() -> None:
    said = answer([BEGIN, "The", " sky", " is", " blue", "!"], [None, -4.0, -3.0, -2.0, -0.25, -9.0])
    found = likelihood_of(said, Continuation("The sky is", " blue"))
    assert (found.logprob, found.tokens, found.is_greedy) == (-0.25, 1, True)
    tokens = read_tokens(said, "The sky is blue")
    assert [(token.end, token.logprob) for token in tokens] == [(0, None), (3, -4.0), (7, -3.0), (10, -2.0), (15, -0.25)]


def test_without_one_the_first_word_has_no_likelihood() -> None:
    tokens = read_tokens(answer(["The", " sky", "!"], [None, -3.0, -9.0]), "The sky")
    assert [(token.end, token.logprob) for token in tokens] == [(3, None), (7, -3.0)]


@pytest.mark.parametrize(
    "pieces",
    [["\N{REPLACEMENT CHARACTER}"] * 2, ["", "”"], ["\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}" * 2]],
    ids=["two pieces", "printed with the last", "one byte and two"],
)
def test_pieces_of_a_character_end_with_it(pieces: list[str]) -> None:
    tokens = ["“No", *pieces, " she", " said", "."]
    assert ends_of(tokens, "“No” she said").ends == (3, 4, 4, 8, 13)
    said = answer(tokens, [None, -1.0, -2.0, -4.0, -8.0, -16.0])
    assert likelihood_of(said, Continuation("“No”", " she said")).logprob == -12.0


@pytest.mark.parametrize(
    "tokens",
    [
        ["The", " sea", "!"],
        ["The", "sky", "!"],
        ["The", " sky"],
        ["The"],
        [],
        [BEGIN, BEGIN, "The", " sky is"],
        ["The", " sk", "\N{REPLACEMENT CHARACTER}", " is"],
        ["\N{REPLACEMENT CHARACTER}" * 40],
    ],
)
def test_tokens_of_another_text_are_refused(tokens: list[str]) -> None:
    with pytest.raises(ServeError, match="not those of the text"):
        ends_of(tokens, "The sky is")


@pytest.mark.parametrize("logprob", [None, "much", float("nan"), 3.0])
def test_likelihoods_that_are_none_are_refused(logprob: object) -> None:
    with pytest.raises(ServeError, match="whole prompt"):
        read_tokens(answer(["The", " sky", "!"], [None, logprob, -1.0]), "The sky")


TEXTS = st.text(st.sampled_from("ab ”é😀世\N{REPLACEMENT CHARACTER}"), min_size=1, max_size=12)


@given(
    TEXTS,
    st.lists(st.integers(1, 40), max_size=12),
    st.booleans(),
    st.sampled_from(["", "x", "!”", "\N{REPLACEMENT CHARACTER}"]),
)
def test_whatever_bytes_a_tokenizer_cuts_at_tokens_end_where_they_do(
    text: str, cuts: list[int], begins: bool, more: str
) -> None:
    whole = text.encode()
    bounds = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    tokens = [whole[begin:end].decode(errors="replace") for begin, end in pairwise(bounds)]
    expected = [len(re.sub(rb"[\x80-\xbf]", b"", whole[:end])) for end in bounds[1:]]
    try:
        found = ends_of([*[BEGIN] * begins, *tokens, more], text)
    except ServeError as error:
        if "in several ways" not in error.message:  # which several characters in pieces may be
            raise
        return
    assert found.before == begins
    assert list(found.ends) == expected


def test_a_replacement_character_of_the_text_s_own_is_itself() -> None:
    assert ends_of(["a \N{REPLACEMENT CHARACTER}", " b", "!"], "a \N{REPLACEMENT CHARACTER} b").ends == (3, 5)


def test_a_server_that_generates_nothing_echoes_the_text_alone() -> None:
    assert ends_of(["a", " b"], "a b").ends == (1, 3)
    assert ends_of([BEGIN, "a", " b"], "a b").ends == (1, 3)


def test_what_could_lie_in_several_ways_is_refused() -> None:
    with pytest.raises(ServeError, match="in several ways"):
        ends_of([*["\N{REPLACEMENT CHARACTER}"] * 5, "!"], "😀😀")
