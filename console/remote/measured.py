"""What is done alike with benchmark runs and evaluations of a server: asked for, listed, shown and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import typer
from pydantic import TypeAdapter
from rich.console import RenderableType
from rich.table import Table

from roundhouse.build.terminal import answer_console

from ..benchmarks.records import BenchmarkDetail, BenchmarkRow
from ..evaluations.records import EvaluationDetail, EvaluationRow
from ..jobs.records import JobDetail
from ..paging import Paged
from .client import Client, Query
from .finding import find_benchmark, find_evaluation
from .following import follow_job, raise_unless_succeeded
from .measured_views import benchmark_view, benchmarks_table, evaluation_view, evaluations_table
from .telling import print_record, show_list, tell_queued

__all__ = ["BENCHMARKS", "EVALUATIONS", "Measured"]

Row = TypeVar("Row", BenchmarkRow, EvaluationRow)
Detail = TypeVar("Detail", BenchmarkDetail, EvaluationDetail)


@dataclass(frozen=True)
class Measured(Generic[Row, Detail]):
    """One of the two kinds."""

    what: str
    """One of them, in a word."""
    many: str
    path: str
    """Below ``/api/v1``."""
    result: str
    """Under which key a job's result has its id."""
    rows: type[Paged[Row]]
    detail: type[Detail]
    find: Callable[[Client, str], Row]
    table: Callable[[Iterable[Row]], Table]
    view: Callable[[Detail], RenderableType]

    def ask(self, client: Client, wish: dict[str, Any], *, follow: bool, json: bool) -> None:
        """Put it in line; where somebody waits for its end, show what came of it, also where the job failed.

        Raises:
            RoundhouseError: it was refused, or did not succeed.
        """
        asked = client.post(self.path, JobDetail, wish)
        if not follow:
            tell_queued(client, [asked.id], json=json, answer=asked)
            return
        job = follow_job(client, asked.id, may_fail=True)
        if job.result is not None and self.result in job.result:
            self._print(client.get(f"{self.path}/{job.result[self.result]}", self.detail), json=json)
        raise_unless_succeeded(job)

    def list(self, client: Client, query: Query, *, json: bool) -> None:
        """A part of the list."""
        found = client.get(self.path, self.rows, query)
        if json:
            print_record(found)
        else:
            show_list(found, self.table(found.items), nothing=f"No {self.many}.")

    def show(self, client: Client, called: str, *, json: bool) -> None:
        """One of them, by its id or the start of it."""
        self._print(client.get(f"{self.path}/{self.find(client, called).id}", self.detail), json=json)

    def remove(self, client: Client, called: str, *, yes: bool) -> None:
        """Delete one, having asked.

        Raises:
            typer.Abort: the answer was no.
        """
        found = self.find(client, called)
        where = f" and from {found.host}" if found.host else ""
        question = f"Delete {self.what} {found.id} ({found.name}) from {client.server}{where}?"
        if not yes and not typer.confirm(question, err=True):
            raise typer.Abort
        client.delete(f"{self.path}/{found.id}", TypeAdapter(None))
        answer_console().print(f"{self.what} {found.id} is deleted", markup=False)

    def _print(self, found: Detail, *, json: bool) -> None:
        if json:
            print_record(found)
        else:
            answer_console().print(self.view(found))


BENCHMARKS: Measured[BenchmarkRow, BenchmarkDetail] = Measured(
    what="run",
    many="benchmark runs",
    path="/benchmarks",
    result="benchmark_id",
    rows=Paged[BenchmarkRow],
    detail=BenchmarkDetail,
    find=find_benchmark,
    table=benchmarks_table,
    view=benchmark_view,
)
EVALUATIONS: Measured[EvaluationRow, EvaluationDetail] = Measured(
    what="evaluation",
    many="evaluations",
    path="/evaluations",
    result="evaluation_id",
    rows=Paged[EvaluationRow],
    detail=EvaluationDetail,
    find=find_evaluation,
    table=evaluations_table,
    view=evaluation_view,
)
