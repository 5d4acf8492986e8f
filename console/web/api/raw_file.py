"""Raw files of measurements, as downloads."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import Response

__all__ = ["GZIP", "raw_file"]

_MEDIA_TYPE = "application/gzip"
GZIP: dict[str, Any] = {
    "description": "The file.",
    "content": {_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
}
"""What is answered, for the API's description."""


def raw_file(name: str, content: bytes) -> Response:
    """A file of a measurement. It is handed on as it is kept, compressed: what it would grow to, nobody knows."""
    plain = f"{name.rpartition('/')[2]}.gz"
    disposition = f"attachment; filename*=UTF-8''{quote(plain, safe='')}"
    return Response(content, media_type=_MEDIA_TYPE, headers={"content-disposition": disposition})
