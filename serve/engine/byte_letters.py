"""The letters of byte-level vocabularies, which write every byte as a character of its own that can be seen."""

from __future__ import annotations

__all__ = ["byte_letters"]


def byte_letters() -> list[str]:
    """The letter that a byte-level vocabulary writes for each byte: itself where it prints, else one from U+0100 on."""
    prints = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in prints else next(others)) for byte in range(256)]
