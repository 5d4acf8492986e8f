"""Runs of a home as lists of them need it: chosen by words, told in brief, taken in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from roundhouse.build.home import Home

from ..history import RecordState, read_header
from .records import Benchmark, BenchmarkHeader
from .statistics import summary_of
from .store import BenchmarkStore

__all__ = ["about_run", "brief", "chosen", "import_files"]


def chosen(runs: Iterable[Benchmark], words: Sequence[str] = (), state: RecordState | None = None) -> list[Benchmark]:
    """Runs that have every word somewhere in what names them, and this state.

    Args:
        runs: in their order.
        words: in any letters.
        state: any when None.
    """
    return [run for run in runs if state in (None, run.state) and all(word.lower() in _sought(run) for word in words)]


def brief(run: Benchmark) -> dict[str, Any]:
    """A run in a list's JSON."""
    header = run.header
    summary = summary_of(run.points, run.prefill)
    return {
        "id": run.id,
        "state": run.state,
        "began_at": header.began_at.isoformat(),
        "name": header.subject.name,
        "model": header.subject.model,
        "engine_id": header.subject.engine_id,
        "driver": header.driver,
        "imported_from": header.imported_from,
        "workload": header.workload.words,
        "workload_key": header.workload.key,
        "hardware": header.ran_on,
        "output_tokens_per_s": summary.tokens_per_s_most,
        "concurrency": summary.concurrency_most,
        "failed": summary.failed,
        "noisy": summary.noisy,
        "points": len(run.points),
        "prefill_points": len(run.prefill),
    }


def about_run(folder: Path) -> str:
    """What a run is about, in a line.

    Raises:
        ServeError: it is damaged.
    """
    header = read_header(folder, BenchmarkHeader)
    return f"{header.subject.name}, {header.workload.words}, measured {header.began_at:%Y-%m-%d %H:%M}"


def import_files(home: Home, files: Sequence[Path], *, server: str | None = None, model: str | None = None) -> list[Benchmark]:
    """Take files into a home: our own exports, and results of other tools. All are read and checked before any is written.

    Args:
        home: where to.
        files: or folders, of aiperf's.
        server: what served, where results do not say.
        model: what the model is, where they do not say.

    Raises:
        UsageError: a file is nothing that can be imported; then nothing is.
        ServeError: it cannot be written.
    """
    from .exporting import checked_runs, is_export, store_runs

    store = BenchmarkStore(home)
    exports = [path for path in files if is_export(path)]
    others = [path for path in files if path not in exports]
    runs = checked_runs(store, exports)
    if not others:
        return store_runs(store, runs)
    from .importing import checked_results, store_results

    results = checked_results(home, others, server=server, model=model, beside=runs)
    return store_runs(store, runs) + store_results(home, results)


def _sought(run: Benchmark) -> str:
    subject = run.header.subject
    words = (run.id, subject.name, subject.model, subject.engine_id, subject.server, subject.url)
    about = (run.header.workload.name, run.header.workload.words, run.header.workload.key, run.header.driver)
    return " ".join(str(each) for each in (*words, *about, run.header.ran_on) if each).lower()
