"""Running a benchmark: one subject, or several by turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.errors import BenchmarkStoppedError, RoundhouseError, ServeError, UsageError

from ..history.store import new_id
from ..measurement.about import Environment
from ..measurement.environment import environment_elsewhere, environment_of
from ..measurement.gpus import find_gpus
from ..measurement.watcher import Watcher
from .labels import labels_of
from .points import NOISY_CORES
from .preparing import prepare_subjects
from .recording import Run
from .records import BenchmarkHeader
from .store import BenchmarkStore
from .subjects import OpenSubject
from .wish import BenchmarkWish

__all__ = ["run_benchmarks"]


def run_benchmarks(home: Home, wishes: Sequence[BenchmarkWish], watcher: Watcher, *, command: str) -> list[Path]:
    """Measure, and write down each point as soon as it is there.

    Several wishes are measured by turns (in each repeat, at each concurrency, one after another; in every second repeat the
    last one first), so that what disturbs the machine hits all alike, and none is always the one that comes after another.
    Everything that they need is started before, and runs until the end.

    Args:
        home: has the engines, and gets the runs.
        wishes: what to measure, at least one.
        watcher: hears how it goes, and may stop it.
        command: measures it again.

    Returns:
        The folder of each wish's run, finished.

    Raises:
        UsageError: a wish cannot be fulfilled; nothing was begun.
        EngineError: an engine is damaged; nothing was begun.
        SetupError: what a driver or a server needs is not there; nothing was begun.
        ServeError: something failed; what was measured before is kept.
        BenchmarkStoppedError: the watcher's ``stopping`` was set; what was measured before is kept.
    """
    if not wishes:
        raise UsageError("there is nothing to measure", hint="Name an engine, or the URL of an endpoint.")
    prepared = prepare_subjects(home, wishes)
    gpus = find_gpus()
    session = new_id() if len(wishes) > 1 else None
    with ExitStack() as subjects:
        opened = []
        for each in prepared:
            for remark in each.remarks:
                watcher.say(remark)
            watcher.stage("start", f"starting {each.name}")
            opened.append(subjects.enter_context(each.opened(gpus, watcher.stopping)))
        headers = [
            _header(wish, subject, _environment(subject, watcher), command, session)
            for wish, subject in zip(wishes, opened, strict=True)
        ]
        with ExitStack() as records:
            store = BenchmarkStore(home)
            runs = []
            names = labels_of([subject.subject for subject in opened])
            for wish, subject, header, name in zip(wishes, opened, headers, names, strict=True):
                writer = store.begin(header)
                records.callback(writer.close)
                runs.append(Run(wish, subject, writer, watcher, name=name))
                watcher.began(writer.folder)
            _measure_all(runs, watcher)
            return [run.writer.folder for run in runs]


def _measure_all(runs: Sequence[Run], watcher: Watcher) -> None:
    """Measure by turns, and say of every run how it ended."""
    parts = list(_parts(runs, watcher))
    under_way = runs[0]
    try:
        for done, (run, measure) in enumerate(parts):
            under_way = run
            if watcher.stopping.is_set():
                raise BenchmarkStoppedError("the benchmark was stopped")
            measure()
            watcher.progress((done + 1) / len(parts))
    except (KeyboardInterrupt, BenchmarkStoppedError):
        _end_all(runs, lambda run: run.writer.end("cancelled"))
        raise
    except Exception as error:
        problem = error.message if isinstance(error, RoundhouseError) else f"{type(error).__name__}: {error}"
        beside = f"it was measured by turns with {under_way.name}, which failed: {problem}"
        failing = under_way
        _end_all(runs, lambda run: run.writer.end("failed", problem if run is failing else beside))
        raise
    if unwritten := _end_all(runs, lambda run: run.writer.end("finished")):
        raise unwritten


def _end_all(runs: Sequence[Run], end: Callable[[Run], None]) -> ServeError | None:
    """Say of every run how it ended, also when that cannot be written of another; returns the first such problem."""
    first = None
    for run in runs:
        try:
            end(run)
        except ServeError as error:
            first = first or error
    return first


def _parts(runs: Sequence[Run], watcher: Watcher) -> Iterator[tuple[Run, Callable[[], None]]]:
    """Everything there is to do, in order: each with its run."""
    stop = watcher.stopping
    for run in runs:
        yield run, partial(_warm_up, run, watcher)
    concurrencies = dict.fromkeys(each for run in runs for each in run.wish.concurrencies)
    lengths = dict.fromkeys(each for run in runs for each in run.wish.prefill_lengths)
    for repeat in range(max(run.wish.repeats for run in runs)):
        turns = runs if repeat % 2 == 0 else runs[::-1]
        taking_part = [run for run in turns if repeat < run.wish.repeats]
        for concurrency in concurrencies:
            for run in taking_part:
                if concurrency in run.wish.concurrencies:
                    yield run, partial(run.measure_point, concurrency, repeat, stop)
        for length in lengths:
            for run in taking_part:
                if length in run.wish.prefill_lengths:
                    yield run, partial(run.measure_prefill, length, repeat, stop)


def _warm_up(run: Run, watcher: Watcher) -> None:
    watcher.stage("warm-up", f"warming {run.name} up")
    run.warm_up(watcher.stopping)


def _environment(subject: OpenSubject, watcher: Watcher) -> Environment:
    if not subject.here:
        return environment_elsewhere()
    environment = environment_of(subject.recipe, subject.gpus, subject.families, watcher.stopping)
    if (environment.idle_cores or 0.0) > NOISY_CORES:
        watcher.say(f"Others keep {environment.idle_cores:.1f} cores of this machine busy: points will be noisy.")
    return environment


def _header(
    wish: BenchmarkWish, subject: OpenSubject, environment: Environment, command: str, session: str | None
) -> BenchmarkHeader:
    return BenchmarkHeader(
        id=new_id(),
        began_at=datetime.now(UTC),
        driver=subject.driver.name,
        driver_version=subject.driver.version,
        subject=subject.subject,
        workload=wish.workload,
        concurrencies=wish.concurrencies,
        repeats=wish.repeats,
        prefill_lengths=wish.prefill_lengths,
        seed=wish.seed,
        command=command,
        environment=environment,
        session=session,
    )
