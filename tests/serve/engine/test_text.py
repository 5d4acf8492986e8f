"""Tokens to text: joined pieces are the full decode for every input, and stop strings end it anywhere."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_tokenizers import byte_fallback_tokenizer

from roundhouse.serve.engine.detokenize import TextStream
from roundhouse.serve.engine.stop_strings import StopStrings
from roundhouse.serve.engine.tokenizer import EngineTokenizer


@pytest.fixture(scope="module")
def byte_fallback() -> EngineTokenizer:
    return byte_fallback_tokenizer()


def stream(
    tokenizer: EngineTokenizer, ids: list[int], stop: tuple[str, ...] = (), min_tokens: int = 0
) -> tuple[list[str], str | None]:
    text = TextStream(tokenizer, stop, min_tokens)
    pieces = []
    for token in ids:
        pieces.append(text.push(token))
        if text.stopped_by is not None:
            break
    return [*pieces, text.finish()], text.stopped_by


def random_ids(tokenizer: EngineTokenizer, seed: int) -> list[int]:
    chosen = random.Random(seed)
    return [chosen.randrange(tokenizer.backend.get_vocab_size() + 4) for _ in range(chosen.randrange(1, 50))]


@pytest.mark.parametrize("kind", ["tokenizer", "byte_fallback"])
def test_joined_pieces_are_the_full_decode_of_any_tokens(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: EngineTokenizer = request.getfixturevalue(kind)
    for seed in range(300):
        ids = random_ids(tokenizer, seed)
        pieces, _ = stream(tokenizer, ids)
        assert "".join(pieces) == tokenizer.decode(ids), ids


@pytest.mark.parametrize("kind", ["tokenizer", "byte_fallback"])
def test_text_comes_as_soon_as_it_is_certain(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: EngineTokenizer = request.getfixturevalue(kind)
    ids = tokenizer.backend.encode("the engine house", add_special_tokens=False).ids
    pieces, _ = stream(tokenizer, ids)
    assert "".join(pieces) == "the engine house"
    assert all(pieces[:-1])
    assert pieces[-1] == ""


def test_a_character_of_several_tokens_comes_whole(tokenizer: EngineTokenizer) -> None:
    ids = tokenizer.backend.encode("a😀b", add_special_tokens=False).ids
    assert len(ids) == 6
    assert stream(tokenizer, ids)[0] == ["a", "", "", "", "😀", "b", ""]


def test_an_incomplete_character_is_given_out_at_the_end(tokenizer: EngineTokenizer) -> None:
    ids = tokenizer.backend.encode("a😀", add_special_tokens=False).ids[:-1]
    assert stream(tokenizer, ids)[0] == ["a", "", "", "", tokenizer.decode(ids)[1:]]


def test_a_replacement_character_of_the_text_itself_passes(tokenizer: EngineTokenizer) -> None:
    ids = tokenizer.backend.encode("x\ufffdy", add_special_tokens=False).ids
    assert "".join(stream(tokenizer, ids)[0]) == "x\ufffdy"


def test_special_tokens_give_no_text(tokenizer: EngineTokenizer) -> None:
    (a,) = tokenizer.backend.encode("a", add_special_tokens=False).ids
    assert stream(tokenizer, [1, a, 2, a, 0])[0] == ["", "a", "", "a", "", ""]


def test_a_stop_string_across_tokens(tokenizer: EngineTokenizer) -> None:
    newline, x = (tokenizer.backend.encode(text, add_special_tokens=False).ids[0] for text in ("\n", "x"))
    pieces, stopped = stream(tokenizer, [x, newline, newline, x], stop=("\n\n",))
    assert (pieces, stopped) == (["x", "", "", ""], "\n\n")


def test_stop_strings_count_only_in_what_comes_after_min_tokens(tokenizer: EngineTokenizer) -> None:
    a, b, x = (tokenizer.backend.encode(text, add_special_tokens=False).ids[0] for text in ("a", "b", "x"))
    ids = [a, b, x, a, b, x]
    assert stream(tokenizer, ids, ("ab",), min_tokens=0) == (["", "", ""], "ab")
    assert stream(tokenizer, ids, ("ab",), min_tokens=1) == (["a", "b", "x", "", "", ""], "ab")
    assert stream(tokenizer, ids, ("ab",), min_tokens=3) == (["a", "b", "x", "", "", ""], "ab")
    assert stream(tokenizer, ids, ("ab",), min_tokens=4) == (["a", "b", "x", "a", "b", "x", ""], None)
    assert stream(tokenizer, ids, ("ab",), min_tokens=9) == (["a", "b", "x", "a", "b", "x", ""], None)


@pytest.mark.parametrize("kind", ["tokenizer", "byte_fallback"])
def test_joined_pieces_are_the_full_decode_up_to_the_stop_string(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: EngineTokenizer = request.getfixturevalue(kind)
    stopped = 0
    for seed in range(300):
        ids = random_ids(tokenizer, seed)
        pieces, found = stream(tokenizer, ids, ("e", "st", "\ufffd"), min_tokens=seed % 7)
        full = tokenizer.decode(ids)
        if found is None:
            assert "".join(pieces) == full, ids
        else:
            assert full.startswith("".join(pieces) + found), ids
            stopped += 1
    assert stopped > 50


@pytest.mark.parametrize(
    ("pieces", "stops", "text", "found"),
    [
        (["xa", "bz"], ("ab",), "x", "ab"),
        (["\n", "\n"], ("\n\n",), "", "\n\n"),
        (["\n", "x"], ("\n\n",), "\nx", None),
        (["aab"], ("ab", "aab"), "", "aab"),
        (["xabc"], ("abc", "b"), "xa", "b"),
        (["aa", "ab"], ("aab",), "a", "aab"),
        (["end a"], ("ab",), "end a", None),
        (["abc", "def"], (), "abcdef", None),
    ],
)
def test_stop_strings(pieces: list[str], stops: tuple[str, ...], text: str, found: str | None) -> None:
    stop_strings = StopStrings(stops)
    joined = "".join(stop_strings.push(piece) for piece in pieces) + stop_strings.finish()
    assert (joined, stop_strings.found) == (text, found)


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.randoms())
def test_where_pieces_are_cut_changes_neither_text_nor_stop(text: str, stops: list[str], chosen: random.Random) -> None:
    def cut(sizes: list[int]) -> tuple[str, str | None]:
        stop_strings, out, start = StopStrings(tuple(stops)), "", 0
        for size in sizes:
            out += stop_strings.push(text[start : start + size])
            start += size
        return out + stop_strings.finish(), stop_strings.found

    sizes = []
    while sum(sizes) < len(text):
        sizes.append(chosen.randint(1, 4))
    joined, found = cut(sizes)
    assert (joined, found) == cut([1] * len(text)) == cut([len(text)])
    assert (found is not None) == any(stop in text for stop in stops)
    assert text.startswith(joined + (found or ""))
