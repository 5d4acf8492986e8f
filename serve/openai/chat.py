"""Messages to token ids, through the tokenizer's own chat template; and what else the front asks the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ApiError
from .messages import ChatMessage
from .text import is_text
from .token_text import TokenText
from .tools import ToolForm, form_of_template
from .tools.definitions import Tool
from .tools.marked_text import MarkedTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ChatTemplate", "load_chat_template"]


class ChatTemplate:
    """Renders conversations. May be used from any thread.

    Args:
        tokenizer: a fast transformers tokenizer, with a chat template or without.
        chat: False when it must not chat, whatever the tokenizer has.
        form: how the model writes tool calls; None reads it from the template.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, chat: bool = True, form: ToolForm | None = None) -> None:
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        # Set once: transformers' own encode() sets them again and again, so that no two threads may use it.
        self._backend.no_truncation()
        self._backend.no_padding()
        text = str(tokenizer.get_chat_template(tools=[{}])) if chat and tokenizer.chat_template else ""
        self.supported = bool(text)
        self.takes_tools = "tools" in text
        self.form = form or form_of_template(text)
        self._knows_developers = "developer" in text
        self.tokens = TokenText(self._backend)
        self.marked = MarkedTokenizer.showing(self._backend, self.form.markers) if self.form else None
        """What shows the markers of tool calls that are special tokens; None when none is."""

    def require_chat(self) -> None:
        """Raise when this model cannot chat.

        Raises:
            ApiError: saying what it can.
        """
        if not self.supported:
            message = "this model's tokenizer has no chat template, so it cannot chat; /v1/completions works"
            raise ApiError(400, message, code="chat_not_supported", param="messages")

    def prompt_ids(self, messages: Sequence[ChatMessage], tools: Sequence[Tool] = (), opening: str = "") -> list[int]:
        """Token ids of a conversation, up to where the assistant answers.

        The template writes every special token itself, so the ids are taken as they are: no second
        beginning-of-sequence token is added on the way.

        Args:
            messages: the conversation.
            tools: what the assistant may call.
            opening: how the answer begins.

        Raises:
            ApiError: there is no template, or it refuses these messages.
        """
        self.require_chat()
        text = self._render(messages, [tool.for_template() for tool in tools]) + opening
        if not is_text(text):
            message = "messages or tools hold half of a surrogate pair, which is not text"
            raise ApiError(400, message, code="invalid_request", param="messages")
        # A batch of one: encode() would hold the interpreter's lock, and a long text takes seconds.
        return list(self._backend.encode_batch([text], add_special_tokens=False)[0].ids)

    def _render(self, messages: Sequence[ChatMessage], tools: list[dict[str, Any]]) -> str:
        conversation = [message.for_template(developer=self._knows_developers) for message in messages]
        try:
            rendered = self._tokenizer.apply_chat_template(
                conversation, tools=tools or None, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template is a program from elsewhere: what it meets in messages may fail in any way
            message = f"the chat template refuses these messages: {error}"
            raise ApiError(400, message, code="invalid_request", param="messages") from None
        return str(rendered)


def load_chat_template(tokenizer_folder: Path, *, chat: bool, form: ToolForm | None = None) -> ChatTemplate:
    """Load the tokenizer of a checkpoint folder.

    Args:
        tokenizer_folder: the checkpoint.
        chat: whether the model can chat.
        form: how the model writes tool calls; None reads it from the template.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder, local_files_only=True)
    return ChatTemplate(tokenizer, chat=chat, form=form)
