"""What `bench run` and `bench compare --interleaved` do alike: from their options to runs that are measured and kept."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from roundhouse.build.command_options import print_json
from roundhouse.build.terminal import answer_console

from ..disk import spelled_out

if TYPE_CHECKING:
    from roundhouse.build.home import Home

    from .records import Benchmark
    from .wish import BenchmarkWish

__all__ = ["measured", "show"]

_INTERRUPTED = 130


def measured(home: Home, subjects: Sequence[str], load: Mapping[str, Any], *, json: bool) -> list[Path]:
    """Measure, telling on standard error how it goes.

    Args:
        home: has the engines, and gets the runs.
        subjects: engines and URLs.
        load: values of the options of :func:`~roundhouse.serve.benchmark.load_options.with_load_options`.
        json: how to show what was kept of runs that did not come to their end.

    Returns:
        Folders of the runs, in the order of their subjects.

    Raises:
        typer.Exit: it was stopped (130); what was measured before has been shown.
        RoundhouseError: something cannot be, or failed; likewise.
    """
    from rich.console import Console

    from roundhouse.errors import BenchmarkStoppedError, RoundhouseError

    from ..measurement.terminal import MeasurementTerminal
    from ..stop_signals import stop_signals
    from .choices import with_ids
    from .command_line import command_of
    from .run import run_benchmarks

    wishes = with_ids(home, _wishes(subjects, load))
    command = command_of(wishes, workload=_resolved(load["workload"]))
    with stop_signals() as stopping, MeasurementTerminal(Console(file=sys.stderr), stopping) as terminal:
        try:
            return run_benchmarks(home, wishes, terminal, command=command)
        except BenchmarkStoppedError:
            show(terminal.folders, json=json)
            raise typer.Exit(_INTERRUPTED) from None
        except RoundhouseError:
            show(terminal.folders, json=json)  # what was measured before it is worth something
            raise


def _wishes(subjects: Sequence[str], load: Mapping[str, Any]) -> list[BenchmarkWish]:
    from ..settings import Overrides, overrides_of
    from .choices import numbers_of, wishes_of, workload_of

    lengths = {name: load[name] for name in ("input_tokens", "output_tokens", "requests_each")}
    concurrency, prefill = load["concurrency"], load["prefill"]
    return wishes_of(
        subjects,
        overrides=overrides_of(**{name: load[name] for name in Overrides.model_fields}),
        driver="loop" if load["bare"] else "aiperf",
        workload=workload_of(load["workload"], **lengths),
        concurrencies=None if concurrency is None else numbers_of("--concurrency", concurrency),
        repeats=load["repeats"],
        prefill_lengths=() if prefill is None else numbers_of("--prefill", prefill),
        seed=load["seed"],
        request_timeout_s=load["timeout"],
        model=load["model"],
        tokenizer=load["tokenizer"],
        metrics=load["metrics"],
        api_key_variable=load["api_key_variable"],
        server=load["server"],
    )


def _resolved(workload: str | None) -> str | None:
    """A workload as it can be named from any folder; None leaves it to be named by what it is."""
    if workload is None or workload.lstrip().startswith("{"):
        return None
    path = spelled_out(workload)
    return str(path.resolve()) if path.is_file() else workload


def show(folders: Sequence[Path], *, json: bool) -> None:
    """What was measured and what to do next, or all of it as JSON.

    Args:
        folders: of runs, however they ended.
        json: for programs.
    """
    from .store import read_benchmark

    runs = [read_benchmark(folder) for folder in folders]
    if json:
        print_json({"runs": [_as_json(folder, run) for folder, run in zip(folders, runs, strict=True)]})
        return
    from .tables import run_view

    console = answer_console()
    for folder, run in zip(folders, runs, strict=True):
        console.print(run_view(run, folder))
    if kept := [run.id for run in runs if run.points or run.prefill]:
        told = f"compare {' '.join(kept)}" if len(kept) > 1 else f"compare OTHER {kept[0]}"
        console.print(f"Next: roundhouse bench {told}", markup=False, soft_wrap=True)


def _as_json(folder: Path, run: Benchmark) -> dict[str, Any]:
    return {"folder": str(folder), **run.model_dump(mode="json")}
