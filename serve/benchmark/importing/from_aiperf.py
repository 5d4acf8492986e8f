"""aiperf's results: ``profile_export_aiperf.json``, and ``profile_export.jsonl`` with the single requests beside it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from roundhouse.errors import ServeError, UsageError

from ..aiperf.failures import kind_of_failure
from ..aiperf.results import read_records
from ..measuring import point_of
from ..points import Percentiles, Point, TokensFrom
from ..workload import Workload
from .document import Document
from .result import Result

__all__ = ["SUMMARY", "is_aiperf", "read_aiperf"]

SUMMARY = "profile_export_aiperf.json"
_RECORDS = "profile_export.jsonl"
_CANCELLED = "RequestCancellationError"


def is_aiperf(document: Document) -> bool:
    """Whether a file's object is aiperf's summary."""
    return "aiperf_version" in document.content


def read_aiperf(document: Document, sha256: str) -> Result:
    """A summary, and the single requests where they lie beside it: then the point is made of these, as any other.

    Raises:
        UsageError: it lacks something, or was not measured at a fixed concurrency.
    """
    document.kind = "aiperf's results"
    phase = _last(document, "input_config", "phases")
    concurrency = phase.get("concurrency")
    if not isinstance(concurrency, int) or concurrency < 1:
        raise document.wrong("it was not measured at one fixed concurrency")
    counted: TokensFrom = "usage" if document.get("input_config", "endpoint", "use_server_token_count") else "client"
    records = document.path.with_name(_RECORDS)
    began_at = _began_at(document)
    if records.is_file():
        point = _from_records(records, concurrency, began_at, counted)
    else:
        point = _from_summary(document, concurrency, began_at, counted)
    urls = document.get("input_config", "endpoint", "urls")
    seed = document.maybe_number("run_info", "random_seed")
    command = document.get("run_info", "cli_command")
    return Result(
        point=point,
        driver="aiperf",
        driver_version=document.text("aiperf_version"),
        model=_model(document),
        url=urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else None,
        requests=point.completed + point.failures + point.cancelled,
        workload=_workload(document, phase),
        seed=None if seed is None else int(seed),
        command=command if isinstance(command, str) else "",
        files=(document.path, records) if records.is_file() else (document.path,),
        sha256=sha256,
    )


def _last(document: Document, *keys: str) -> dict[str, Any]:
    """The last entry of a list, mostly the only one: of phases, a warm-up comes before what is measured."""
    entries = document.get(*keys)
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise document.wrong(f"the key {'.'.join(keys)!r} is missing: aiperf of another version made it")
    found: dict[str, Any] = entries[-1]
    return found


def _began_at(document: Document) -> datetime:
    try:
        told = datetime.fromisoformat(document.text("start_time"))
    except ValueError:
        raise document.wrong("the key 'start_time' is no time") from None
    return told.astimezone(UTC)  # without a zone it is taken for this machine's


def _model(document: Document) -> str:
    name = _last(document, "input_config", "models", "items").get("name")
    if not isinstance(name, str) or not name:
        raise document.wrong("it names no model")
    return name


def _from_records(path: Path, concurrency: int, began_at: datetime, counted: TokensFrom) -> Point:
    try:
        requests = read_records(path).requests(count_here=counted == "client")
        return point_of(requests, concurrency=concurrency, repeat=0, began_at=began_at, tokens_from=counted)
    except (ServeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def _from_summary(document: Document, concurrency: int, began_at: datetime, counted: TokensFrom) -> Point:
    failed: Counter[str] = Counter()
    cancelled = 0
    for each in document.get("error_summary") or ():
        error, count = each.get("error_details", {}), int(each.get("count", 0))
        if error.get("type") == _CANCELLED:
            cancelled += count
        else:
            failed[kind_of_failure(error)] += count
    completed = int(document.maybe_number("request_count", "avg") or 0)
    return Point(
        concurrency=concurrency,
        repeat=0,
        began_at=began_at,
        duration_s=document.positive("benchmark_duration", "avg"),
        completed=completed,
        failed=dict(failed),
        cancelled=cancelled,
        input_tokens=document.whole("total_isl", "avg") if completed else 0,
        output_tokens=document.whole("total_osl", "avg") if completed else 0,
        tokens_from=counted,
        ttft=_latency(document, "time_to_first_token"),
        inter_token=_latency(document, "inter_token_latency"),
        end_to_end=_latency(document, "request_latency"),
    )


def _latency(document: Document, name: str) -> Percentiles | None:
    if document.get(name) is None:
        return None
    if document.get(name, "unit") != "ms":
        raise document.wrong(f"{name} is not in milliseconds")
    mean, p50, p90, p95, p99 = (document.number(name, part) / 1e3 for part in ("avg", "p50", "p90", "p95", "p99"))
    count = document.maybe_number(name, "count")
    return Percentiles(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, count=None if count is None else int(count))


def _workload(document: Document, phase: dict[str, Any]) -> Workload:
    dataset = _last(document, "input_config", "datasets")
    cancelling = phase.get("cancellation") or {}
    asked: dict[str, Any] = {}
    if cancelling.get("rate"):
        asked = {"cancel_share": cancelling["rate"] / 100, "cancel_after_s": cancelling.get("delay") or 1e-3}
    prefix = dataset.get("prefix_prompts") or {}
    before = int(prefix.get("length") or 0)
    if before:
        asked |= {"prefix_tokens": before, "prefixes": prefix.get("pool_size") or 1}
    if dataset.get("type") == "file":
        mean_in, spread_in = document.number("input_sequence_length", "avg"), 0.0
        asked |= {"kind": "conversations", "file": str(dataset.get("path") or "unknown")}
    else:
        mean_in, spread_in = _length(dataset, "isl", document)
    mean_out, spread_out = _length(dataset, "osl", document)
    try:
        return Workload(
            name=f"aiperf: {dataset.get('name', 'main')}",
            input_tokens=round(mean_in) + before,
            input_spread=round(spread_in),
            output_tokens=round(mean_out),
            output_spread=round(spread_out),
            **asked,
        )
    except ValidationError as error:
        problem = error.errors()[0]
        raise document.wrong(f"its workload cannot be: {problem['msg']}") from None


def _length(dataset: dict[str, Any], name: str, document: Document) -> tuple[float, float]:
    """Mean and standard deviation that were asked for; the mean that came where none was."""
    asked = (dataset.get("prompts") or dataset).get(name)
    if isinstance(asked, dict) and isinstance(asked.get("mean"), int | float):
        return asked["mean"], asked.get("stddev") or 0.0
    if isinstance(asked, int | float):
        return asked, 0.0
    whole = {"isl": "input_sequence_length", "osl": "output_sequence_length"}[name]
    return document.number(whole, "avg"), 0.0
