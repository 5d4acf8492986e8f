"""Server-sent events: what a page that is open is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse

__all__ = ["STREAM_S", "event_text", "stream_response"]

STREAM_S = 240.0
"""How long one stream lasts; then the browser comes again and says where it was."""


def event_text(data: object, *, identity: int | None = None, event: str | None = None) -> str:
    """One event, its data as JSON."""
    head = (f"event: {event}\n" if event else "") + (f"id: {identity}\n" if identity is not None else "")
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n"


def stream_response(events: AsyncIterator[str]) -> StreamingResponse:
    """An answer that goes on while there are events."""
    headers = {"x-accel-buffering": "no"}  # or a proxy would keep lines until it has many
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
