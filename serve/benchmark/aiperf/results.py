"""From aiperf's records, one request a line, to requests as benchmarks count them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from roundhouse.errors import ServeError

from ..failure_words import EMPTY_ANSWER
from ..measuring import MeasuredRequest
from .failures import kind_of_failure

__all__ = ["Records", "read_records"]

_PROFILING = "profiling"
_NS = 1e9


class Records:
    """What one run of aiperf recorded. Its warm-up, where there was one, is left out.

    Args:
        records: as aiperf wrote them.
    """

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self._records = [each for each in records if each["metadata"].get("benchmark_phase", _PROFILING) == _PROFILING]

    def __len__(self) -> int:
        return len(self._records)

    @property
    def answered(self) -> int:
        """Requests that got tokens and no error, as aiperf sees it."""
        return sum(_was_answered(each) for each in self._records)

    @property
    def counted(self) -> int:
        """Those of them whose tokens the server counted."""
        return sum(_was_answered(each) and _metric(each, "usage_completion_tokens") is not None for each in self._records)

    @property
    def messages(self) -> list[str]:
        """What went wrong, in aiperf's or the server's words, without repetitions."""
        errors = (each["error"].get("message", "") for each in self._records if each.get("error"))
        return list(dict.fromkeys(errors))

    def requests(self, *, count_here: bool) -> list[MeasuredRequest]:
        """All requests, on a clock that starts with the first of them.

        Args:
            count_here: take the client's count of tokens. Else an answer that the server did not count to its end is a
                failed one: aiperf takes a stream that breaks off with an error for a complete answer.
        """
        zero = min((each["metadata"]["request_start_ns"] for each in self._records), default=0)
        return [_request(each, zero, count_here) for each in self._records]


def read_records(path: Path) -> Records:
    """Read ``profile_export.jsonl``.

    Raises:
        ServeError: it cannot be read, or is not what aiperf writes.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            return Records([_checked(json.loads(line)) for line in lines if line.strip()])
    except OSError as error:
        raise ServeError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ServeError(f"{path} is not aiperf's records of single requests: {error!r}") from None


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """The same record, when it has what every one has."""
    for name in ("request_start_ns", "request_end_ns"):
        if not isinstance(record["metadata"][name], int):
            raise TypeError(name)
    if not isinstance(record.setdefault("metrics", {}), dict):
        raise TypeError("metrics")
    if not isinstance(record.get("error") or {}, dict):
        raise TypeError("error")
    return record


def _was_answered(record: dict[str, Any]) -> bool:
    return not record.get("error") and _metric(record, "time_to_first_token") is not None


def _request(record: dict[str, Any], zero: int, count_here: bool) -> MeasuredRequest:
    about = record["metadata"]
    began, ended = (about["request_start_ns"] - zero) / _NS, (about["request_end_ns"] - zero) / _NS
    if about.get("was_cancelled"):
        return MeasuredRequest("cancelled", began, ended)
    if record.get("error"):
        return MeasuredRequest("failed", began, ended, error=kind_of_failure(record["error"]))
    to_first, to_last = _metric(record, "time_to_first_token"), _metric(record, "request_latency")
    written = _metric(record, "output_sequence_length" if count_here else "usage_completion_tokens")
    if to_first is None or to_last is None or written == 0:
        return MeasuredRequest("failed", began, ended, error=EMPTY_ANSWER)
    if written is None:
        return MeasuredRequest("failed", began, ended, error="unfinished answer")
    read = _metric(record, "usage_prompt_tokens")
    if read is None:
        read = _metric(record, "input_sequence_length")
    return MeasuredRequest(
        "completed",
        began,
        began + to_last / 1e3,
        first_token=began + to_first / 1e3,
        input_tokens=int(read or 0),
        output_tokens=int(written),
    )


def _metric(record: dict[str, Any], name: str) -> float | None:
    metric = record["metrics"].get(name)
    value = metric.get("value") if isinstance(metric, dict) else None
    return value if isinstance(value, int | float) and math.isfinite(value) else None
