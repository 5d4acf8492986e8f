"""Results of vLLM's serve benchmark: ``vllm bench serve --save-result``, with and without ``--save-detailed``."""

from __future__ import annotations

import re
import statistics
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from ..failure_words import EMPTY_ANSWER, WORDS_OF_EXCEPTIONS
from ..measuring import MeasuredRequest, percentiles, point_of
from ..points import Percentiles, Point
from ..workload import Workload
from .document import Document
from .result import Result

__all__ = ["is_vllm", "read_vllm"]

_SIGNS = ("duration", "completed", "request_throughput")
_SINGLE = ("input_lens", "output_lens", "ttfts", "latencies", "start_times", "errors")
"""Lists with a value for each request, of which a detailed file has all; ``itls`` hold gaps of chunks, not of tokens."""
_PHRASES = {status.phrase.lower(): status.value for status in HTTPStatus}


def is_vllm(document: Document) -> bool:
    """Whether a file's object is a result of vLLM's serve benchmark."""
    return all(sign in document.content for sign in _SIGNS)


def read_vllm(document: Document, sha256: str) -> Result:
    """A result; from its single requests where the file has them, so that one without tokens is a failed one.

    Raises:
        UsageError: it lacks something, is of a pooling model, or was not measured at a fixed concurrency.
    """
    document.kind = "a result of vLLM's serve benchmark"
    document.whole("total_output_tokens")  # what pooling models do not have
    concurrency, requests = _concurrency(document), document.whole("num_prompts")
    began_at = _began_at(document)
    detailed = all(isinstance(document.get(name), list) for name in _SINGLE)
    point = _from_requests(document, concurrency, began_at) if detailed else _from_summary(document, concurrency, began_at)
    return Result(
        point=point,
        driver="vllm",
        driver_version=None,  # the file does not say
        model=document.text("model_id"),
        url=None,
        requests=requests,
        workload=_workload(document, detailed),
        seed=None,
        command="",
        files=(document.path,),
        sha256=sha256,
    )


def _concurrency(document: Document) -> int:
    """As many as were allowed at once; all of them where nothing held them back."""
    if document.get("request_rate") != "inf":
        raise document.wrong("its requests were sent at a rate, not at a fixed concurrency (request_rate is not inf)")
    limited = document.get("max_concurrency") is not None
    return int(document.positive("max_concurrency" if limited else "num_prompts"))


def _began_at(document: Document) -> datetime:
    """When it was written down, on this machine's clock: the file has no zone, and no other time."""
    try:
        return datetime.strptime(document.text("date"), "%Y%m%d-%H%M%S").astimezone(UTC)
    except ValueError:
        raise document.wrong("the key 'date' is no time") from None


def _from_requests(document: Document, concurrency: int, began_at: datetime) -> Point:
    columns = [document.get(name) for name in _SINGLE]
    if len({len(column) for column in columns}) != 1:
        raise document.wrong(f"{', '.join(_SINGLE)} are not of one length")
    try:
        requests = [_request(*row) for row in zip(*columns, strict=True)]
        return point_of(requests, concurrency=concurrency, repeat=0, began_at=began_at, tokens_from="client")
    except (TypeError, ValueError) as error:
        raise document.wrong(f"its single requests cannot be: {error}") from None


def _request(read: int, written: int, to_first: float, whole: float, began: float, error: str) -> MeasuredRequest:
    if error:
        return MeasuredRequest("failed", began, began + whole, error=_kind(error))
    if not written or not to_first:
        return MeasuredRequest("failed", began, began + whole, error=EMPTY_ANSWER)
    return MeasuredRequest("completed", began, began + whole, began + to_first, read, written)


def _kind(error: str) -> str:
    """From what vLLM keeps: a status' phrase, or a whole traceback."""
    last = error.strip().splitlines()[-1].strip()
    status = _PHRASES.get(last.lower())
    if status is not None:
        return f"http {status}"
    named = re.match(r"(?:[\w]+\.)*(?P<name>\w*(?:Error|Exception|Timeout))\b", last)
    return WORDS_OF_EXCEPTIONS.get(named["name"], named["name"]) if named else "error"


def _from_summary(document: Document, concurrency: int, began_at: datetime) -> Point:
    failed = 0 if document.get("failed") is None else document.whole("failed")  # older files do not say
    latencies = document.get("latencies")
    end_to_end = _latency(document, "e2el")
    if end_to_end is None and isinstance(latencies, list) and not failed and all(isinstance(each, float) for each in latencies):
        end_to_end = percentiles(latencies)  # of completed requests alone only when none failed
    return Point(
        concurrency=concurrency,
        repeat=0,
        began_at=began_at,
        duration_s=document.positive("duration"),
        completed=document.whole("completed"),
        failed={"unknown": failed} if failed else {},
        input_tokens=document.whole("total_input_tokens"),
        output_tokens=document.whole("total_output_tokens"),
        tokens_from="client",
        ttft=_latency(document, "ttft"),
        inter_token=_latency(document, "tpot"),
        end_to_end=end_to_end,
    )


def _latency(document: Document, name: str) -> Percentiles | None:
    """As far as percentiles were asked for: by default there is only the 99th. None without it."""
    mean, median, p99 = (document.maybe_number(f"{part}_{name}_ms") for part in ("mean", "median", "p99"))
    if mean is None or median is None or p99 is None:
        return None
    p90, p95 = (document.maybe_number(f"{part}_{name}_ms") for part in ("p90", "p95"))
    return Percentiles(
        mean=mean / 1e3,
        p50=median / 1e3,
        p90=None if p90 is None else p90 / 1e3,
        p95=None if p95 is None else p95 / 1e3,
        p99=p99 / 1e3,
    )


def _workload(document: Document, detailed: bool) -> Workload:
    """Lengths as they came: the file does not say what was asked for."""
    completed = max(int(document.number("completed")), 1)
    spread: dict[str, Any] = {}
    if detailed:
        spread["input_spread"] = round(statistics.pstdev(document.get("input_lens")))
    return Workload(
        name="vLLM's",
        input_tokens=max(round(document.number("total_input_tokens") / completed), 1),
        output_tokens=max(round(document.number("total_output_tokens") / completed), 1),
        **spread,
    )
