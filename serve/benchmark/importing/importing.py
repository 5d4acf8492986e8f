"""From result files to runs: read, put together, written down."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import ServeError, UsageError

from ...history.reader import read_header
from ...history.store import new_id
from ...measurement.about import Environment, Subject
from ..records import Benchmark, BenchmarkHeader
from ..store import POINTS, BenchmarkStore, read_benchmark
from .document import Document, read_documents
from .from_aiperf import SUMMARY, is_aiperf, read_aiperf
from .from_vllm import is_vllm, read_vllm
from .result import Result

__all__ = ["CheckedResult", "checked_results", "import_results", "read_results", "store_results"]


@dataclass(frozen=True)
class CheckedResult:
    """A run that can be written down, and what each of its points was read from, in their order."""

    run: Benchmark
    results: tuple[Result, ...]


def read_results(paths: Sequence[Path], *, server: str | None = None, model: str | None = None) -> list[Benchmark]:
    """Runs as they would be imported. Files of the same, at several concurrencies or several times, are one run.

    Args:
        paths: result files, or folders that aiperf wrote.
        server: what served, in words; the files do not say.
        model: what the model is, where its name at the endpoint does not say.

    Raises:
        UsageError: a file is no result that can be read, or lacks something, naming the file and the key.
    """
    return [_benchmark(group, server, model) for group in _groups(paths)]


def import_results(
    home: Home, paths: Sequence[Path], *, server: str | None = None, model: str | None = None
) -> list[Benchmark]:
    """Write runs down as if they had been measured here, with copies of the files they came from. None is when a file is wrong.

    Args:
        home: where to.
        paths: as of :func:`read_results`; likewise the others.
        server: what served.
        model: what the model is.

    Raises:
        UsageError: also when a file was imported before.
        ServeError: it cannot be written.
    """
    return store_results(home, checked_results(home, paths, server=server, model=model))


def checked_results(
    home: Home, paths: Sequence[Path], *, server: str | None = None, model: str | None = None, beside: Sequence[Benchmark] = ()
) -> list[CheckedResult]:
    """Results as they would be imported: nothing is written yet.

    Args:
        home: where to.
        paths: as of :func:`read_results`; likewise the next two.
        server: what served.
        model: what the model is.
        beside: runs that are taken in at the same time.

    Raises:
        UsageError: also when a file was imported before.
    """
    groups = _groups(paths)
    known = _imported(BenchmarkStore(home))
    for run in beside:
        known |= dict.fromkeys(run.header.imported_sha256, run.id)
    _refuse_known(known, groups)
    return [CheckedResult(_benchmark(group, server, model), tuple(group)) for group in groups]


def store_results(home: Home, checked: Sequence[CheckedResult]) -> list[Benchmark]:
    """Write checked results down, with copies of the files that they came from.

    Raises:
        ServeError: it cannot be written.
    """
    store, written = BenchmarkStore(home), []
    for each in checked:
        run = each.run
        with store.begin(run.header) as record:
            record.add(POINTS, *run.points)
            for result, point in zip(each.results, run.points, strict=True):
                for path in result.files:
                    record.raw.keep(f"c{point.concurrency}-r{point.repeat}/{path.name}", path)
            record.end("finished", at=run.ended_at)
        written.append(read_benchmark(store.records.folder / run.id))
    return written


def _groups(paths: Sequence[Path]) -> list[list[Result]]:
    """Results that belong together, each in the order of their time."""
    results: list[Result] = []
    read: dict[str, Path] = {}
    for path in paths:
        found = _read(path)
        if found[0].sha256 in read:
            raise UsageError(f"{read[found[0].sha256]} and {path} are the same", hint="Name it once.")
        read[found[0].sha256] = path
        results += found
    groups: list[list[Result]] = []
    for result in sorted(results, key=lambda each: each.point.began_at):
        group = next((each for each in groups if result.belongs_to(each[0])), None)
        if group is None:
            groups.append([result])
        else:
            group.append(result)
    return groups


def _read(path: Path) -> list[Result]:
    file = path / SUMMARY if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise UsageError(f"{path} is no folder that aiperf wrote: there is no {SUMMARY}")
    documents, sha256 = read_documents(file)
    return [_result(each, sha256) for each in documents]


def _result(document: Document, sha256: str) -> Result:
    try:
        if is_aiperf(document):
            return read_aiperf(document, sha256)
        if is_vllm(document):
            return read_vllm(document, sha256)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Something is of another kind than that tool writes it. Which key it was, nobody can tell any more.
        raise document.wrong(f"it holds what such a file does not: {error}") from None
    keys = ", ".join(list(document.content)[:6]) or "nothing"
    raise UsageError(
        f"{document.path} is no result that can be imported: it holds {keys}",
        hint=f"aiperf writes {SUMMARY}; vLLM's serve benchmark writes one with --save-result.",
    )


def _refuse_known(known: dict[str, str], groups: Sequence[Sequence[Result]]) -> None:
    for group in groups:
        for result in group:
            if result.sha256 in known:
                hint = f"`roundhouse bench show {known[result.sha256]}` shows it."
                raise UsageError(f"{result.files[0]} was imported before, as run {known[result.sha256]}", hint=hint)


def _imported(store: BenchmarkStore) -> dict[str, str]:
    """Of every file that was imported, the SHA-256 and the run. Only headers are read: points may be many."""
    known: dict[str, str] = {}
    for folder in store.records:
        with contextlib.suppress(ServeError):  # a damaged run is nothing that this could change
            known |= dict.fromkeys(read_header(folder, BenchmarkHeader).imported_sha256, folder.name)
    return known


def _benchmark(group: Sequence[Result], server: str | None, model: str | None) -> Benchmark:
    first = group[0]
    seen: Counter[int] = Counter()
    points = []
    for result in group:
        points.append(result.as_repeat(seen[result.point.concurrency]))
        seen[result.point.concurrency] += 1
    shares = [result.requests // result.point.concurrency for result in group]
    asked = {"requests_each": max(min(shares), 1), "least_requests": max(min(each.requests for each in group), 1)}
    header = BenchmarkHeader(
        id=new_id(),
        began_at=first.point.began_at,
        driver=first.driver,
        driver_version=first.driver_version,
        imported_from=first.files[0].name,
        imported_sha256=tuple(dict.fromkeys(result.sha256 for result in group)),
        subject=Subject(kind="endpoint", name=first.model, model=model or first.model, url=first.url, server=server),
        workload=first.workload.model_copy(update=asked),
        concurrencies=tuple(sorted(seen)),
        repeats=max(seen.values()),
        seed=first.seed,
        command=first.command,
        environment=Environment(host="", hardware=None, versions=_versions(first)),
    )
    ended_at = max(point.began_at + timedelta(seconds=point.duration_s) for point in points)
    return Benchmark(header=header, state="finished", ended_at=ended_at, problem=None, points=tuple(points), prefill=())


def _versions(result: Result) -> dict[str, str]:
    return {result.driver: result.driver_version} if result.driver_version else {}
