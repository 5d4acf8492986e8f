"""What single tokens spell, with each kind of tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from roundhouse.serve.openai.token_text import TokenText

TEXT = "Where is the café? 🚂 <eos>"


def test_the_bytes_of_byte_level_tokens_are_those_of_the_text(tokenizer) -> None:
    tokens = TokenText(tokenizer.backend_tokenizer)
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    assert b"".join(map(tokens.bytes_of, ids)) == TEXT.encode()
    assert tokens.decode(ids) == TEXT
    assert tokens.bytes_of(tokenizer.eos_token_id) == b"<eos>"


@given(text=st.text())
def test_any_text_survives(tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert TokenText(tokenizer.backend_tokenizer).decode(ids) == text


def test_part_of_a_character_has_no_text_of_its_own(tokenizer) -> None:
    tokens = TokenText(tokenizer.backend_tokenizer)
    parts = tokenizer.encode("🚂", add_special_tokens=False)
    assert len(parts) > 1
    assert all(tokens.text_of(part) == "�" for part in parts)
    assert tokens.label_of(parts[0]) == "bytes:\\xf0"
    assert len({tokens.label_of(part) for part in parts}) == len(parts)


@pytest.mark.parametrize(
    ("token", "spelled"),
    [("▁the", b" the"), ("<0xF0>", b"\xf0"), ("a▁b", b"a b"), ("é", "é".encode())],
)
def test_sentencepiece_tokens(token: str, spelled: bytes) -> None:
    backend = Tokenizer(models.BPE({token: 0, "<unk>": 1}, [], unk_token="<unk>", byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    assert TokenText(backend).bytes_of(0) == spelled


def test_an_id_beyond_the_vocabulary_spells_nothing(tokenizer) -> None:
    assert TokenText(tokenizer.backend_tokenizer).bytes_of(10**6) == b""
