"""The letters of byte-level vocabularies are those that the tokenizers library writes."""

from __future__ import annotations

from tokenizers import pre_tokenizers

from roundhouse.serve.engine.byte_letters import byte_letters

EVERY_BYTE = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000, 0x1000))))
"""Every one that UTF-8 has."""


def test_letters_are_those_of_the_tokenizers_library() -> None:
    letters = byte_letters()
    ((written, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(EVERY_BYTE)
    assert written == "".join(letters[byte] for byte in EVERY_BYTE.encode())
    assert len(set(EVERY_BYTE.encode())) == 256 - 13  # C0, C1 and F5 to FF never occur
    assert sorted(letters) == sorted(pre_tokenizers.ByteLevel.alphabet())
