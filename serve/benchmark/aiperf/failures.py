"""How aiperf tells that a request failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..failure_words import WORDS_OF_EXCEPTIONS

__all__ = ["REFUSED", "kind_of_failure"]

REFUSED = frozenset(f"http {code}" for code in (400, 401, 403, 404, 405, 422))
"""When nothing else comes, the requests were wrong, not the server slow."""


def kind_of_failure(error: Mapping[str, Any]) -> str:
    """In a few words.

    Args:
        error: aiperf's: ``type``, ``code`` where there was an answer with a status, ``message``.
    """
    known = WORDS_OF_EXCEPTIONS.get(str(error.get("type")))
    if known is not None:
        return known
    code = error.get("code")
    return f"http {code}" if isinstance(code, int) and 100 <= code < 600 else str(error.get("type") or "unknown")
