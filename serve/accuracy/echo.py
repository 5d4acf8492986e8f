"""Where the tokens that an endpoint echoes lie in the text that it was sent.

The offsets that come with them are not used: servers add up lengths of tokens as they print them, the token that begins a
document included. What is printed is laid onto the text's bytes again, and what does not lie there exactly is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from roundhouse.errors import ServeError

__all__ = ["Echoed", "ends_of"]

_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""What is printed for a piece of a character: for each byte that goes on with one, and for a beginning of one as a whole."""
_PIECES = re.compile(f"{_REPLACED}|[^{_REPLACED}]+")


@dataclass(frozen=True)
class Echoed:
    """How echoed tokens lie in a text."""

    before: int
    """Tokens before the text: one that begins a document, or none."""
    ends: tuple[int, ...]
    """For each token of the text, the character before which it ends; a piece of a character ends with the character."""


def ends_of(tokens: Sequence[str], text: str) -> Echoed:
    """Lay tokens onto a text. The last one was generated after it, as one was asked for; or none was.

    Raises:
        ServeError: they are not the text's, or they could be in several ways.
    """
    for inside in (len(tokens) - 1, len(tokens)):
        for before in range(min(2, max(inside, 0))):
            if (ends := _laid(tokens[before:inside], text)) is not None:
                return Echoed(before, ends)
    raise ServeError("the tokens that the endpoint echoes are not those of the text")


def _laid(tokens: Sequence[str], text: str) -> tuple[int, ...] | None:
    """Ends in characters; None when the tokens do not make up the text."""
    whole = text.encode()
    reached: list[set[int]] = [{0}]
    """Before each token: the bytes at which it may begin. Pieces of characters are of one to three bytes."""
    for token in tokens:
        reached.append({end for begin in reached[-1] for end in _after(token, whole, begin)})
        if not reached[-1]:
            return None
    if len(whole) not in reached[-1]:
        return None
    ends: list[set[int]] = [{len(whole)}]
    for place in range(len(tokens) - 1, 0, -1):
        ends.append({begin for begin in reached[place] if _after(tokens[place], whole, begin) & ends[-1]})
    characters = _characters(whole)
    found: list[int] = []
    for token, possible in zip(tokens, reversed(ends), strict=True):
        # A token that prints nothing is a piece of the character that a later one prints.
        rounded = {characters[end] if token else characters[min(end + 1, len(whole))] for end in possible}
        if len(rounded) != 1:
            raise ServeError("the tokens that the endpoint echoes lie in the text in several ways")
        found += rounded
    return tuple(found)


def _after(token: str, whole: bytes, begin: int) -> set[int]:
    """Where a token that begins at a byte may end."""
    places = {begin}
    pieces = _PIECES.findall(token)
    for number, piece in enumerate(pieces):
        following: set[int] = set()
        for place in places:
            literal = piece.encode()
            if whole.startswith(literal, place):
                following.add(place + len(literal))
            if piece == _REPLACED:
                following |= _pieces_at(whole, place, last=number + 1 == len(pieces))
        places = following
    return places


def _pieces_at(whole: bytes, place: int, *, last: bool) -> set[int]:
    """Where a printed piece of a character may end: one byte inside it, or its beginning, which ends a token."""
    if place >= len(whole):
        return set()
    if _goes_on(whole[place]):
        return {place + 1}
    size = _size(whole[place])
    return {place + count for count in range(1, size)} if last else set()


def _goes_on(byte: int) -> bool:
    return 0x80 <= byte < 0xC0


def _size(byte: int) -> int:
    """Bytes of the character that a byte begins."""
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


def _characters(whole: bytes) -> list[int]:
    """For each number of bytes, how many characters they are, begun ones included."""
    counts = [0]
    for byte in whole:
        counts.append(counts[-1] + (not _goes_on(byte)))
    return counts
