"""What single tokens spell: their bytes, and the text that OpenAI's log-probabilities show for them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..engine.byte_letters import byte_letters

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["TokenText"]

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\u2581"
"""What SentencePiece writes for a space."""


class TokenText:
    """The vocabulary of a tokenizer, token by token.

    Decoding a token alone is not enough: half a character has no text, and a leading space would be lost.

    Args:
        backend: the tokenizer.
    """

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend
        self._added = {number: token.content for number, token in backend.get_added_tokens_decoder().items()}
        decoder = json.loads(backend.to_str()).get("decoder")
        byte_level = '"ByteLevel"' in json.dumps(decoder)
        self._alphabet = {letter: byte for byte, letter in enumerate(byte_letters())} if byte_level else None

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes of a token, special ones spelled out; empty for an id that the tokenizer does not have."""
        if token_id in self._added:
            return self._added[token_id].encode()
        token = self._backend.id_to_token(token_id)
        if token is None:
            return b""
        if self._alphabet is not None and all(char in self._alphabet for char in token):
            return bytes(self._alphabet[char] for char in token)
        if byte := _BYTE_TOKEN.fullmatch(token):
            return bytes([int(byte[1], 16)])
        return token.replace(_SPACE, " ").encode()

    def text_of(self, token_id: int) -> str:
        """The text of a token; part of a character is shown as what stands for one that cannot be read."""
        return self.bytes_of(token_id).decode(errors="replace")

    def label_of(self, token_id: int) -> str:
        """The text of a token; part of a character as ``bytes:`` and its bytes in hexadecimal, so that no two are the same."""
        spelled = self.bytes_of(token_id)
        try:
            return spelled.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelled)

    def decode(self, token_ids: list[int]) -> str:
        """The text of many tokens, special ones spelled out."""
        return b"".join(map(self.bytes_of, token_ids)).decode(errors="replace")
