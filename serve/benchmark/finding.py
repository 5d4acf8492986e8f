"""How a command line names a run: by its id in the home, or as an exported file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roundhouse.errors import UsageError

from ..disk import spelled_out

if TYPE_CHECKING:
    from .records import Benchmark
    from .store import BenchmarkStore

__all__ = ["RunArgument", "RunsArgument", "find_run"]

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, the start of it, `latest`, or a file of `bench export`.")
]
RunsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Ids of runs, starts of them, `latest`, or files of `bench export`.")
]


def find_run(store: BenchmarkStore, wanted: str) -> Benchmark:
    """A run of the home, or the only one of an exported file.

    Raises:
        UsageError: there is none, or a file holds several.
        ServeError: it is damaged.
    """
    if not wanted.endswith(".json"):
        return store.open(wanted)
    from .exporting import read_export

    runs = read_export(spelled_out(wanted))
    if len(runs) != 1:
        raise UsageError(f"{wanted} holds {len(runs)} runs", hint="Export the one that is meant to a file of its own.")
    return runs[0]
