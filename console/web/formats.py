"""How pages write numbers, times and ids. Nothing known is a dash, never a zero."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..database.clock import utc_now
from .chips import chip
from .drawing import memory_picture, page_shapes, spark_line, stage_bars

__all__ = [
    "FILTERS",
    "absolute",
    "bytes_text",
    "count_text",
    "duration",
    "iso",
    "log_level",
    "number_text",
    "outline",
    "percent",
    "relative",
    "sentence",
    "short_id",
]

UNKNOWN = "—"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_DATE_AFTER_S = 30 * _DAY
_SHORT = 8
_ERROR = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL)\b|^\s*(?:[Ee]rror|[Ff]atal)\b|\b(?:[Ee]rror|panic):"
    r"|^Traceback \(|\w(?:Error|Exception)(?::|$)|^E\d{4} "
)
_WORD = re.compile(r"[^\W\d_]+(?=[\s,;]|$)")
_WARNING = re.compile(r"\bWARN(?:ING)?\b|^\s*[Ww]arning\b|\b[Ww]arning:|\wWarning:|^W\d{4} ")


def bytes_text(count: float | None) -> str:
    """Bytes in binary units: ``111.2 MiB``."""
    if count is None:
        return UNKNOWN
    value, unit = float(count), "B"
    for unit in _UNITS:
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{value:,.0f} B" if unit == "B" else f"{value:,.1f} {unit}"


def count_text(count: float | None) -> str:
    """A count with its thousands apart: ``12,345``."""
    return UNKNOWN if count is None else f"{round(count):,}"


def number_text(value: float | None) -> str:
    """A measurement in about three digits: ``0.042``, ``8.31``, ``83.1``, ``1,234``."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    digits = 0 if size >= 100 or value == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """A share from 0 to 1: ``97.3%``. Only all of it is 100%, only nothing 0%."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    text = f"{share * 100:,.1f}"
    return f"{text.removesuffix('.0') if share in (0, 1) else text}%"


def duration(seconds: float | None) -> str:
    """A span of time: ``0.8 s``, ``42 s``, ``3 min 12 s``, ``2 h 5 min``, ``2 d 4 h``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0:
        return f"−{duration(-seconds)}"
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, name, lesser, lesser_name in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // lesser
            return f"{whole // unit} {name}" + (f" {rest} {lesser_name}" if rest else "")
    return f"{whole} s"


def relative(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or in how long: ``3 min ago``, ``in 2 h``; further than 30 days away, the day."""
    if moment is None:
        return UNKNOWN
    seconds = ((now or utc_now()) - moment).total_seconds()
    away = abs(seconds)
    if away >= _DATE_AFTER_S:
        return f"{moment.astimezone(UTC):%Y-%m-%d}"
    if away < 1:
        return "now"
    unit, name = next(each for each in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")) if away >= each[0])
    text = f"{int(away // unit)} {name}"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def absolute(moment: datetime | None) -> str:
    """The moment itself: ``2025-11-30 03:10:22 UTC``."""
    return UNKNOWN if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(moment: datetime) -> str:
    """The moment for programs: ``2025-11-30T03:10:22Z``."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def short_id(identity: str | None, length: int = _SHORT) -> str:
    """As much of an id as tells it from its neighbours."""
    return UNKNOWN if not identity else identity[:length]


def log_level(line: str) -> str:
    """What a log line looks like: ``error``, ``warning`` or nothing. ``static/js/log.js`` does the same."""
    return "error" if _ERROR.search(line) else "warning" if _WARNING.search(line) else ""


def sentence(text: str) -> str:
    """A text that begins a sentence: its first letter is raised where that is of a plain word, never of an identifier."""
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def outline(value: object, most: int) -> str:
    """Any value as a text of at most so many characters; only the API tells all of a long one."""
    if isinstance(value, list | tuple):
        value = ", ".join(str(each) for each in value[:most])
    text = UNKNOWN if value is None else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


FILTERS: dict[str, Callable[..., Any]] = {
    "absolute": absolute,
    "bytes_text": bytes_text,
    "chip": chip,
    "count_text": count_text,
    "duration": duration,
    "iso": iso,
    "log_level": log_level,
    "memory_picture": memory_picture,
    "number_text": number_text,
    "outline": outline,
    "page_shapes": page_shapes,
    "percent": percent,
    "relative": relative,
    "sentence": sentence,
    "short_id": short_id,
    "spark_line": spark_line,
    "stage_bars": stage_bars,
}
"""What templates may write after a ``|``."""
