"""A result file as read: its keys, with errors that name the file and the key."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roundhouse.errors import UsageError

__all__ = ["Document", "read_documents"]


class Document:
    """One JSON object of a result file.

    Args:
        path: of the file.
        content: the object.
        kind: what the file is taken for, in words, for errors.
    """

    def __init__(self, path: Path, content: Mapping[str, Any], kind: str = "a benchmark's results") -> None:
        self.path = path
        self.content = content
        self.kind = kind

    def wrong(self, what: str) -> UsageError:
        """An error about this file."""
        return UsageError(f"{self.path}: {what}", hint=f"It was read as {self.kind}.")

    def get(self, *keys: str) -> Any:
        """A value, or None where there is none on the way."""
        value: Any = self.content
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def number(self, *keys: str) -> float:
        """A number.

        Raises:
            UsageError: it is missing, or is none.
        """
        found = self.maybe_number(*keys)
        if found is None:
            raise self.wrong(f"the key {'.'.join(keys)!r} is missing, or is no number")
        return found

    def positive(self, *keys: str) -> float:
        """A number above zero.

        Raises:
            UsageError: it is missing, or is none.
        """
        found = self.number(*keys)
        if found <= 0:
            raise self.wrong(f"the key {'.'.join(keys)!r} is not above zero")
        return found

    def whole(self, *keys: str) -> int:
        """A whole number of things.

        Raises:
            UsageError: it is missing, or is none.
        """
        found = self.number(*keys)
        if found < 0 or found != int(found):
            raise self.wrong(f"the key {'.'.join(keys)!r} is no number of things")
        return int(found)

    def maybe_number(self, *keys: str) -> float | None:
        """A finite number, or None."""
        value = self.get(*keys)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if is_number else None

    def text(self, *keys: str) -> str:
        """A text.

        Raises:
            UsageError: it is missing, or is none.
        """
        value = self.get(*keys)
        if not isinstance(value, str) or not value:
            raise self.wrong(f"the key {'.'.join(keys)!r} is missing, or is no text")
        return value


def read_documents(path: Path) -> tuple[list[Document], str]:
    """Read a file of JSON objects, one or several after another, and the SHA-256 of it.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        data = path.read_bytes()
        rest = data.decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    decoder, found = json.JSONDecoder(), []
    while rest:
        try:
            content, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path} is not JSON: {error}") from None
        if not isinstance(content, dict):
            raise UsageError(f"{path} is no result of a benchmark: it holds no JSON object")
        found.append(Document(path, content))
        rest = rest[end:].lstrip()
    if not found:
        raise UsageError(f"{path} is empty")
    return found, hashlib.sha256(data).hexdigest()
