"""The bound on a text's tokens: never above what tokenizing gives, and enough to refuse what cannot fit unread."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import chain

import pytest
from driving import failure, request, scripted_loop, serve, tokens
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from roundhouse.serve.engine.token_bound import TokenBound, token_bound
from roundhouse.serve.engine.tokenizer import EngineTokenizer

TEXT = ["the engine house stood at the end of the yard, and the engine in it", "ΐ é Å K  \u0401 \n\n\n\n   x", "   " * 9]


def byte_level(*, normalizer: object = None, alphabet: list[str] | None = None) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<a special token that is long>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return tokenizer


def sentencepiece_like(*, byte_tokens: int = 256) -> Tokenizer:
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(byte_tokens)), *"▁abcdefghijklmnopqrstuvwxyzé", "th", "the", "▁▁"]
    model = models.BPE(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[("t", "h"), ("th", "e"), ("▁", "▁")],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.ByteFallback()
    return tokenizer


KINDS: dict[str, Tokenizer] = {
    "byte-level": byte_level(),
    "byte-level, NFC": byte_level(normalizer=normalizers.NFC()),
    "byte-level, bytes missing": byte_level(alphabet=list("abcdefgh ")),
    "byte-level, NFC, bytes missing": byte_level(normalizer=normalizers.NFC(), alphabet=list("abcdefgh ")),
    "byte fallback": sentencepiece_like(),
}
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("the engine \x04ΐ\u1fbe\u0308\u0301\u212a"))
)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.one_of(TEXTS, st.builds(lambda text, times: text * times, TEXTS, st.integers(1, 40))))
def test_no_text_has_fewer_tokens(kind: str, text: str) -> None:
    bound = token_bound(KINDS[kind].to_str())
    assert bound is not None
    assert bound.least_tokens(text.encode()) <= len(KINDS[kind].encode(text).ids)


def test_the_longest_token_counts_in_bytes_of_text() -> None:
    bound = token_bound(KINDS["byte-level"].to_str())
    assert bound == TokenBound(longest=len("<a special token that is long>"), composes=False, dropped=b"")
    assert bound.least_tokens(b"x" * 30_000) == 1000
    bound = token_bound(KINDS["byte-level, NFC"].to_str())
    assert bound is not None
    assert (bound.least_tokens(b"x" * 30_000), bound.least_tokens("é".encode() * 15_000)) == (1000, 250)


def test_composition_makes_a_text_at_most_four_times_shorter() -> None:
    """Every composed character against the longest way of writing it."""
    ways: dict[str, int] = {}
    for character in map(chr, chain(range(0xD800), range(0xE000, 0x110000))):
        decomposed = unicodedata.normalize("NFD", character)
        ways[decomposed] = max(ways.get(decomposed, 0), len(character.encode()))
    for decomposed, longest in ways.items():
        longest = max(longest, sum(ways.get(part, 4) for part in decomposed))
        assert longest <= 4 * len(unicodedata.normalize("NFC", decomposed).encode())


def stripping() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True)])
    return tokenizer


def removing() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


@pytest.mark.parametrize(
    "make",
    [
        stripping,
        removing,
        lambda: byte_level(normalizer=normalizers.Strip()),
        lambda: byte_level(normalizer=normalizers.Replace("  ", " ")),
        lambda: sentencepiece_like(byte_tokens=255),
        lambda: Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")),
    ],
)
def test_there_is_no_bound_where_text_may_vanish(make: Callable[[], Tokenizer]) -> None:
    assert token_bound(make().to_str()) is None
    assert EngineTokenizer(make(), frozenset()).least_tokens(b"x" * 10**6) == 0


def test_a_text_that_cannot_fit_is_refused_unread(tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, _ = scripted_loop(tokenizer)
    read: list[str] = []
    encode = tokenizer.encode
    monkeypatch.setattr(tokenizer, "encode", lambda text: read.append(text) or encode(text))
    outputs = serve(loop, request("huge", "engine " * 500_000), request("good", "engine"))
    assert failure(outputs["huge"]).code == "invalid_request"
    message = failure(outputs["huge"]).message
    assert message.startswith("the prompt has 3,500,000 bytes, which are ")
    assert message.endswith("tokens or more; this engine takes at most 127 of 128")
    assert len(tokens(outputs["good"])) == 16
    assert read == ["engine"]


def test_the_longest_text_that_fits_is_taken(tokenizer: EngineTokenizer) -> None:
    longest = max((tokenizer.decode([token]) for token in range(3, 512)), key=len)
    assert tokenizer.encode(longest * 127) == tokenizer.encode(longest) * 127
    assert tokenizer.least_tokens((longest * 127).encode()) == 127
    assert len(tokens(serve(scripted_loop(tokenizer)[0], request("r", longest * 127))["r"])) == 1
