"""Pages as somebody reads them."""

from __future__ import annotations

import html
import re
from typing import Any

__all__ = ["text_of"]


def text_of(browser: Any, path: str, status: int = 200) -> str:
    """The words of a page's content, without marks and pictures, and with single spaces."""
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    body = re.sub(r"<(script|style|svg).*?</\1>", " ", answer.text.partition("<main")[2], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())
