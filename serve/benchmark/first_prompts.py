"""What users say first in a workload's conversations, as token ids: later turns need answers, which only a server keeps."""

from __future__ import annotations

from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.errors import ServeError, UsageError

from .conversations import read_conversations
from .workload import Workload

__all__ = ["first_prompts"]


def first_prompts(workload: Workload, engine: Engine) -> list[list[int]]:
    """The first turn of each conversation, through the engine's chat template.

    Raises:
        UsageError: the file is not what it was, or the engine cannot chat.
        ServeError: the chat template refuses what is said.
    """
    from ..openai.chat import load_chat_template
    from ..openai.errors import ApiError
    from ..openai.messages import ChatMessage

    if workload.file is None:
        raise UsageError(f"the workload {workload.name} names no conversation file")
    template = load_chat_template(engine.checkpoint, chat=engine.manifest.chat)
    prompts = []
    for conversation in read_conversations(Path(workload.file), expected_sha256=workload.file_sha256):
        messages = [ChatMessage(role="system", content=conversation.system)] if conversation.system else []
        messages.append(ChatMessage(role="user", content=conversation.says[0]))
        try:
            prompts.append(template.prompt_ids(messages))
        except ApiError as error:
            raise ServeError(f"{workload.file}: {error.message}") from None
    return prompts
