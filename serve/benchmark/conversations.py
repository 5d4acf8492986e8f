"""Conversation files: what users say to a model, for workloads that are not random text.

A file is JSON Lines, or one JSON list, of objects that each hold one conversation in one of three forms::

    {"messages": [{"role": "system", "content": "…"}, {"role": "user", "content": "…"}, {"role": "assistant", …}]}
    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}]}
    {"prompt": "…"}

What an assistant says in a file is left out: the endpoint's own answers take its place when the next turn is sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import UsageError

__all__ = ["Conversation", "content_hash", "read_conversations"]

_FORMS = 'a conversation is {"messages": […]}, {"conversations": […]} or {"prompt": "…"}'
_USERS = {"user", "human"}
_SYSTEM = {"system", "developer"}
_MODELS = {"assistant", "gpt", "model", "tool", "function", "bing", "chatgpt"}


@dataclass(frozen=True)
class Conversation:
    """What is said to the model, in order."""

    says: tuple[str, ...]
    system: str | None = None


def content_hash(path: Path) -> str:
    """SHA-256 of a file, as hex digits.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:  # also of a text that is no path
        raise UsageError(f"conversation file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def read_conversations(path: Path, *, expected_sha256: str | None = None) -> list[Conversation]:
    """Read a conversation file.

    Args:
        path: of the file.
        expected_sha256: refuse a file of another content.

    Raises:
        UsageError: it cannot be read, is another one than it was, or holds something else, naming the entry.
    """
    found = content_hash(path)
    if expected_sha256 is not None and found != expected_sha256:
        raise UsageError(f"conversation file {path} has changed since the workload was made", hint="Name it again.")
    conversations = [_conversation(path, number, entry) for number, entry in _entries(path)]
    if not conversations:
        raise UsageError(f"{path} holds no conversation", hint=f"One a line; {_FORMS}.")
    return conversations


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Every entry, with where it stands."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"conversation file {path} cannot be read: {error}") from None
    if text.lstrip().startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not JSON: {error}") from None
        yield from ((f"entry {number}", entry) for number, entry in enumerate(entries, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(f"{path}, line {number}: not JSON: {error}", hint=f"One a line; {_FORMS}.") from None


def _conversation(path: Path, where: str, entry: Any) -> Conversation:
    def wrong(what: str) -> UsageError:
        return UsageError(f"{path}, {where}: {what}", hint=f"In a conversation file, {_FORMS}.")

    if not isinstance(entry, Mapping):
        raise wrong("it is no JSON object")
    if "prompt" in entry:
        messages: Any = [{"role": "user", "content": entry["prompt"]}]
    elif "messages" in entry:
        messages = entry["messages"]
    elif "conversations" in entry:
        messages = entry["conversations"]
    else:
        raise wrong(f"it has no `messages`, `conversations` or `prompt`, but {', '.join(map(str, entry)) or 'nothing'}")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise wrong("its messages are no list")
    says: list[str] = []
    system: str | None = None
    for message in messages:
        if not isinstance(message, Mapping):
            raise wrong("a message is no JSON object")
        role, content = message.get("role", message.get("from")), message.get("content", message.get("value"))
        if not isinstance(role, str):
            raise wrong("a message has no `role` (or `from`)")
        if role in _MODELS:
            continue
        if not isinstance(content, str) or not content.strip():
            raise wrong(f"what {role} says is no text")
        if role in _USERS:
            says.append(content)
        elif role in _SYSTEM and not says and system is None:
            system = content
        else:
            raise wrong(f"a message of {role!r} cannot stand there")
    if not says:
        raise wrong("no user says anything")
    return Conversation(tuple(says), system)
