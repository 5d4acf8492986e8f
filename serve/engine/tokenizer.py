"""The tokenizer as the engine loop uses it: text to ids, which ids end a text, which ids show no text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.errors import ModelError

from .token_bound import token_bound

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["EngineTokenizer", "load_tokenizer"]

_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")


class EngineTokenizer:
    """A Rust tokenizer with what the engine needs to know about its vocabulary.

    Args:
        backend: the tokenizer itself.
        eos_ids: ids that end a sequence.
    """

    def __init__(self, backend: Tokenizer, eos_ids: frozenset[int]) -> None:
        # A tokenizer.json may carry a training run's limits: a prompt must never be cut or filled silently.
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.eos_ids = eos_ids
        self._special = {i for i, token in backend.get_added_tokens_decoder().items() if token.special}
        self._bound = token_bound(backend.to_str())
        self._bytes = {i for token, i in backend.get_vocab().items() if _BYTE_TOKEN.fullmatch(token)}

    def encode(self, text: str) -> list[int]:
        """Token ids of a valid Unicode text, with the special tokens that the model expects around it."""
        return list(self.backend.encode(text).ids)

    def least_tokens(self, utf8: bytes) -> int:
        """A number of tokens that a text in UTF-8 cannot have fewer than, without tokenizing it; 0 when unknown."""
        return 0 if self._bound is None else self._bound.least_tokens(utf8)

    def decode(self, ids: list[int]) -> str:
        """The text of token ids, special tokens left out."""
        return str(self.backend.decode(ids, skip_special_tokens=True))

    def shows_text(self, token_id: int) -> bool:
        """False for special tokens, and for ids that a padded vocabulary has and the tokenizer has not."""
        return token_id not in self._special and self.backend.id_to_token(token_id) is not None

    def is_byte(self, token_id: int) -> bool:
        """Whether the token stands for one raw byte: a run of them becomes text only as a whole."""
        return token_id in self._bytes


def load_tokenizer(folder: Path) -> EngineTokenizer:
    """Load the tokenizer of a checkpoint folder.

    An id ends a sequence when ``generation_config.json``, ``config.json`` or the tokenizer says so:
    chat models often name their end-of-turn token in only one of the three.

    Raises:
        ModelError: there is no tokenizer.json, or it or a config cannot be read.
    """
    from transformers import AutoTokenizer

    # Without the file transformers may make up an empty tokenizer from config.json.
    if not (folder / "tokenizer.json").exists():
        raise ModelError(f"{folder} has no tokenizer.json", hint="Build the engine from a model that has one.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} has no usable tokenizer: {error}", hint="Build the engine again.") from None
    backend = tokenizer.backend_tokenizer
    eos = {tokenizer.eos_token_id, *_eos_ids(folder / "config.json"), *_eos_ids(folder / "generation_config.json")}
    return EngineTokenizer(backend, frozenset(i for i in eos if i is not None))


def _eos_ids(path: Path) -> list[int]:
    try:
        config: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not valid JSON: {error}", hint="Build the engine again.") from None
    found = config.get("eos_token_id")
    return [] if found is None else [found] if isinstance(found, int) else list(found)
