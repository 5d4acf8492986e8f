"""How few tokens a text can be, known without tokenizing it.

A tokenizer that drops nothing splits the bytes of a text among its tokens, so a text has at least as
many tokens as its bytes divided by the longest token's. Tokenizers that may drop or join text without
limit have no such bound, and :func:`token_bound` gives none rather than a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .byte_letters import byte_letters

__all__ = ["TokenBound", "token_bound"]

_NFC_SHRINKS = 4
"""Bytes of UTF-8 that canonical composition may make one byte of: 3.5 at most (three Greek characters, 7 to 2)."""
_KEEP_ALL = {"ByteLevel", "Digits", "Metaspace"}
"""Pre-tokenizers that drop nothing. ``Split`` is another one, unless told to remove what it matches."""


@dataclass(frozen=True)
class TokenBound:
    """Bytes that tokens of one tokenizer can stand for."""

    longest: int
    """Bytes of the longest token, special tokens included."""
    composes: bool
    """Whether texts are brought into NFC first, which makes them shorter."""
    dropped: bytes
    """Bytes that the tokenizer has no token for, and leaves out."""

    def least_tokens(self, utf8: bytes) -> int:
        """A number of tokens that no text has fewer than; 0 where nothing can be said."""
        if not self.composes or utf8.isascii():
            return -(-len(utf8.translate(None, self.dropped)) // self.longest)
        return 0 if self.dropped else -(-len(utf8) // (self.longest * _NFC_SHRINKS))


def token_bound(tokenizer: str) -> TokenBound | None:
    """The bound of a ``tokenizer.json``, or None when it may drop or join text."""
    parts: dict[str, Any] = json.loads(tokenizer)
    model, added = parts["model"], parts["added_tokens"]
    normalizers, splitters = list(_leaves(parts["normalizer"])), list(_leaves(parts["pre_tokenizer"]))
    # An added token that strips takes any number of spaces beside it along.
    if model["type"] != "BPE" or any(token["lstrip"] or token["rstrip"] for token in added):
        return None
    if not (all(map(_only_composes_or_grows, normalizers)) and all(map(_drops_nothing, splitters))):
        return None
    vocabulary = model["vocab"]
    if any(splitter["type"] == "ByteLevel" for splitter in splitters):
        letters = byte_letters()
        longest = max(map(len, vocabulary), default=1)  # each letter of such a token stands for one byte
        dropped = bytes(byte for byte, letter in enumerate(letters) if letter not in vocabulary)
    elif model["byte_fallback"] and all(f"<0x{byte:02X}>" in vocabulary for byte in range(256)):
        longest = max(len(token.encode()) for token in vocabulary)
        dropped = b""
    else:
        return None  # runs of unknown characters may become one token, or none
    longest = max([longest, *(len(token["content"].encode()) for token in added)])
    return TokenBound(longest, any(normalizer["type"] == "NFC" for normalizer in normalizers), dropped)


def _leaves(part: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A normalizer or pre-tokenizer, or what a sequence of them consists of."""
    if part is None:
        return
    if part["type"] != "Sequence":
        yield part
        return
    for each in part.get("normalizers") or part.get("pretokenizers") or ():
        yield from _leaves(each)


def _only_composes_or_grows(normalizer: dict[str, Any]) -> bool:
    if normalizer["type"] == "Replace":
        replaced = normalizer["pattern"].get("String")  # a regular expression may match any length
        return replaced is not None and len(normalizer["content"].encode()) >= len(replaced.encode())
    return normalizer["type"] in {"NFC", "Prepend"}


def _drops_nothing(splitter: dict[str, Any]) -> bool:
    return splitter["type"] in _KEEP_ALL or (splitter["type"] == "Split" and splitter["behavior"] != "Removed")
