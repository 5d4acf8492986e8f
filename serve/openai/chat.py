"""Messages to token ids, through the tokenizer's own chat template."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ApiError
from .schemas import ChatMessage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ChatTemplate", "load_chat_template"]


class ChatTemplate:
    """Renders conversations.

    Args:
        tokenizer: a transformers tokenizer, or None when it has no chat template.
    """

    def __init__(self, tokenizer: object | None) -> None:
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        """Fast tokenizers refuse to be used by two threads at once."""

    @property
    def supported(self) -> bool:
        """Whether there is a template."""
        return self._tokenizer is not None

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> list[int]:
        """Token ids of a conversation, up to where the assistant answers. May be called from any thread.

        The template writes every special token itself, so the ids are taken as they are: no second
        beginning-of-sequence token is added on the way.

        Raises:
            ApiError: there is no template, or it refuses these messages.
        """
        from transformers import PreTrainedTokenizerBase

        if not isinstance(self._tokenizer, PreTrainedTokenizerBase):
            message = "this model's tokenizer has no chat template, so it cannot chat; /v1/completions works"
            raise ApiError(400, message, code="chat_not_supported", param="messages")
        with self._lock:
            return self._render(self._tokenizer, messages)

    def _render(self, tokenizer: PreTrainedTokenizerBase, messages: Sequence[ChatMessage]) -> list[int]:
        from jinja2 import TemplateError

        try:
            text = tokenizer.apply_chat_template(
                [message.for_template() for message in messages], tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            raise ApiError(
                400, f"the chat template refuses these messages: {error}", code="invalid_request", param="messages"
            ) from None
        return list(tokenizer.encode(str(text), add_special_tokens=False))


def load_chat_template(tokenizer_folder: Path, *, chat: bool) -> ChatTemplate:
    """Load the tokenizer of a checkpoint folder; not needed, and not loaded, when it cannot chat."""
    if not chat:
        return ChatTemplate(None)
    from transformers import AutoTokenizer

    return ChatTemplate(AutoTokenizer.from_pretrained(tokenizer_folder, local_files_only=True))
