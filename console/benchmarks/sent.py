"""Result files that somebody sends, read as runs: nothing of it is written down yet."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundhouse.errors import RoundhouseError, UsageError
from roundhouse.serve.benchmark.exporting import is_export, read_export
from roundhouse.serve.benchmark.importing import read_results
from roundhouse.serve.benchmark.records import Benchmark

from .content import BenchmarkContent
from .sent_files import FileKeeper, KeptFiles, SentFile

__all__ = ["MOST_BYTES", "SentContent", "read_sent"]

MOST_BYTES = 16 * 2**20
"""Of all files that are sent at once."""
_MOST_RUNS = 100
_REQUESTS, _BESIDE = ".jsonl", "profile_export.jsonl"
"""aiperf's single requests, and how they are called where its results look for them."""
_NOTHING = KeptFiles()


@dataclass(frozen=True)
class SentContent(BenchmarkContent):
    """A run that was read from files."""

    too_large: tuple[str, ...] = ()
    """Names of those that are too large to be kept with it."""


def read_sent(files: Sequence[SentFile], *, server: str | None = None, model: str | None = None) -> list[SentContent]:
    """The runs in files: of aiperf, of vLLM's serve benchmark, or of ``bench export``. Reads no database.

    Results of the same, at several concurrencies or several times, are one run. aiperf's single requests
    (``profile_export.jsonl``) come with the one result that they belong to. Files of other tools are kept with the first run
    that was read from them; of our own exports nothing is, because what is written down of a run is all that they hold.

    Args:
        files: as they came.
        server: what served, in words; files do not say.
        model: what the model is, where its name at the endpoint does not say.

    Raises:
        UsageError: one is none of these, or they are too large, or lack something.
    """
    size = sum(len(file.content) for file in files)
    if size > MOST_BYTES:
        raise UsageError(f"the {_files(files)} {size:,} bytes; {MOST_BYTES:,} are read at most")
    results = [file for file in files if not file.called.lower().endswith(_REQUESTS)]
    requests = [file for file in files if file not in results]
    if requests and (len(requests) > 1 or len(results) != 1):
        raise UsageError(
            f"{requests[0].called} holds single requests, and it is not clear of which result",
            hint="Send it together with the one profile_export_aiperf.json that lies beside it, and nothing else.",
        )
    with tempfile.TemporaryDirectory(prefix="roundhouse-import-") as folder:
        runs = _read(Path(folder), results, requests, server, model)
    if not 0 < len(runs) <= _MOST_RUNS:
        raise UsageError(f"the {_files(files)} {len(runs)} runs; 1 to {_MOST_RUNS} are taken at once")
    counted = Counter(run.header.id for run in runs)
    if twice := [id_ for id_, times in counted.items() if times > 1]:
        raise UsageError(f"run {twice[0]} is there twice", hint="Send it once.")
    return runs


def _files(files: Sequence[SentFile]) -> str:
    return "file has" if len(files) == 1 else "files have"


def _read(
    folder: Path, results: Sequence[SentFile], requests: Sequence[SentFile], server: str | None, model: str | None
) -> list[SentContent]:
    paths: dict[Path, SentFile] = {}
    for number, file in enumerate(results):
        path = folder / str(number) / "results.json"  # whatever name it came with
        path.parent.mkdir()
        path.write_bytes(file.content)
        paths[path] = file
        for each in requests:
            path.with_name(_BESIDE).write_bytes(each.content)
    exports = {path: file for path, file in paths.items() if is_export(path)}
    runs: list[SentContent] = []
    keeper = FileKeeper()
    with _named(paths, requests):
        for path, file in exports.items():
            runs += [_content(run, file.called) for run in read_export(path)]
        if others := [path for path in paths if path not in exports]:
            runs += [_result(run, results, requests, keeper) for run in read_results(others, server=server, model=model)]
    if requests and (exports or any(run.header.driver != "aiperf" for run in runs)):
        raise UsageError(f"{requests[0].called} holds single requests of aiperf, and {results[0].called} is no result of it")
    return runs


@contextmanager
def _named(paths: Mapping[Path, SentFile], requests: Sequence[SentFile]) -> Iterator[None]:
    """What is said of a file names it as it came: the folder that it lies in is nobody's business."""
    called = {str(path): file.called for path, file in paths.items()}
    called |= {str(path.with_name(_BESIDE)): each.called for path in paths for each in requests}
    try:
        yield
    except RoundhouseError as error:
        message = error.message
        for path, name in called.items():
            message = message.replace(path, name)
        raise UsageError(message, hint=error.hint) from None
    except (ArithmeticError, ValueError) as error:
        names = ", ".join(file.called for file in paths.values())
        raise UsageError(f"{names} cannot be read as results: {error}") from None


def _result(run: Benchmark, results: Sequence[SentFile], requests: Sequence[SentFile], keeper: FileKeeper) -> SentContent:
    """A run of results, with the files that it was read from."""
    of_it = [file for file in results if file.sha256 in run.header.imported_sha256]
    named = run.model_copy(update={"header": run.header.model_copy(update={"imported_from": of_it[0].called})})
    return _content(named, of_it[0].called, keeper.kept(run.header.id, [*of_it, *requests]))


def _content(run: Benchmark, name: str, kept: KeptFiles = _NOTHING) -> SentContent:
    header = run.header.model_copy(update={"imported_from": run.header.imported_from or name})
    # What still ran when it was exported has no end here either: nobody will measure the rest.
    state = "interrupted" if run.state == "running" else run.state
    return SentContent(
        header=header,
        state=state,
        ended_at=run.ended_at,
        problem=run.problem,
        points=run.points,
        prefill=run.prefill,
        files=kept.files,
        too_large=kept.too_large,
    )
