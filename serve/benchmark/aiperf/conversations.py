"""A conversation file in the form that aiperf reads: what users say, turn by turn. The answers are the endpoint's own."""

from __future__ import annotations

import json
from pathlib import Path

from roundhouse.errors import UsageError

from ...disk import writing
from ..conversations import read_conversations
from ..workload import Workload

__all__ = ["write_for_aiperf"]


def write_for_aiperf(workload: Workload, folder: Path) -> Path:
    """Write a workload's conversations for aiperf.

    Raises:
        UsageError: the file is not there, holds no conversations, or is not the one that the workload was made with.
        ServeError: it cannot be written.
    """
    if workload.file is None:
        raise UsageError(f"the workload {workload.name} names no conversation file")
    conversations = read_conversations(Path(workload.file), expected_sha256=workload.file_sha256)
    path = folder / "conversations.jsonl"
    with writing("conversations for aiperf", folder), path.open("w", encoding="utf-8") as lines:
        for number, conversation in enumerate(conversations):
            turns = [{"role": "system", "text": conversation.system}] if conversation.system else []
            turns += [{"role": "user", "text": each} for each in conversation.says]
            lines.write(json.dumps({"session_id": f"c{number}", "turns": turns}) + "\n")
    return path
