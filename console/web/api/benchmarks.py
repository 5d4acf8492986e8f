"""Benchmark runs, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from roundhouse.serve.benchmark.records import Benchmark

from ...access.sealing import Sealer
from ...benchmarks.actions import ask_benchmark
from ...benchmarks.deleting import delete_runs
from ...benchmarks.files import one_file
from ...benchmarks.importing import add_imported
from ...benchmarks.marking import MOST_NOTE, MOST_TAGS, set_baseline, set_note, set_tags
from ...benchmarks.queries import (
    benchmark_choices,
    benchmark_detail,
    benchmark_rows,
    list_benchmarks,
    require_benchmark,
    samples_since,
)
from ...benchmarks.records import BenchmarkChoices, BenchmarkDetail, BenchmarkRow, SamplesAnswer
from ...benchmarks.requests import BenchmarkRequest
from ...benchmarks.sent import MOST_BYTES, read_sent
from ...benchmarks.sent_files import SentFile
from ...benchmarks.whole_runs import benchmark_records
from ...jobs.queries import job_detail
from ...jobs.records import JobDetail
from ...paging import Paged
from ..benchmark_list import BenchmarkListSort, BenchmarksWanted
from ..page import ListPage
from ..state import state_of
from ..who import Builder, Reading, needs
from .asked import BenchmarkId, FileName, IdempotencyKey
from .raw_file import GZIP, raw_file

__all__ = ["BenchmarkMarks", "ImportRequest", "router"]

router = APIRouter(prefix="/api/v1/benchmarks", tags=["benchmarks"])


class BenchmarkMarks(BaseModel):
    """What is to be changed of what people put on a run; what is left out stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    note: Annotated[str, Field(max_length=MOST_NOTE)] | None = None
    """Empty: none."""
    tags: Annotated[tuple[Annotated[str, Field(max_length=40)], ...], Field(max_length=MOST_TAGS)] | None = None
    """All that it carries from now on."""
    baseline: bool | None = None
    """Whether it is pinned: later runs of its series are compared with the newest pinned one."""


class ImportRequest(BaseModel):
    """A file of results."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1, max_length=400)]
    """The file's."""
    content: Annotated[str, Field(max_length=MOST_BYTES)]
    """All of it."""
    server: Annotated[str, Field(max_length=200)] | None = None
    """What served, in words; the file does not say."""
    model: Annotated[str, Field(max_length=200)] | None = None
    """What the model is, where its name at the endpoint does not say."""


@router.get("", dependencies=[needs("read")])
def benchmarks(
    session: Reading, part: ListPage, wanted: BenchmarksWanted, sort: BenchmarkListSort = "-began"
) -> Paged[BenchmarkRow]:
    """Every benchmark run, with filters."""
    return list_benchmarks(session, wanted, part, sort)


@router.post("", status_code=202)
def ask(
    request: Request, response: Response, actor: Builder, wanted: BenchmarkRequest, idempotency_key: IdempotencyKey = None
) -> JobDetail:
    """Have speed measured: a job, whose result names the run. The same key again gets the same job."""
    state = state_of(request)
    sealer = Sealer.of(state.settings.home)
    with state.database.writing() as session:
        job_id = ask_benchmark(session, actor, wanted, sealer, key=idempotency_key).id
    response.headers["location"] = f"/api/v1/jobs/{job_id}"
    with state.database.reading() as session:
        return job_detail(session, job_id)


@router.post("/imports", status_code=201)
def import_file(request: Request, actor: Builder, wanted: ImportRequest) -> tuple[BenchmarkRow, ...]:
    """Take the runs of a file of results: of aiperf, of vLLM's serve benchmark, or of `bench export`. Once each (409)."""
    database = state_of(request).database
    file = SentFile(name=wanted.name, content=wanted.content.encode())
    runs = read_sent([file], server=wanted.server, model=wanted.model)
    with database.writing() as session:
        ids = add_imported(session, actor, runs)
    with database.reading() as session:
        return benchmark_rows(session, ids)


@router.get("/choices", dependencies=[needs("read")])
def choices(session: Reading) -> BenchmarkChoices:
    """What the filters of the list can be set to."""
    return benchmark_choices(session)


@router.get("/{benchmark_id}", dependencies=[needs("read")])
def benchmark(session: Reading, benchmark_id: BenchmarkId) -> BenchmarkDetail:
    """One run, with its levels and points."""
    return benchmark_detail(session, benchmark_id)


@router.patch("/{benchmark_id}")
def mark(request: Request, actor: Builder, benchmark_id: BenchmarkId, wanted: BenchmarkMarks) -> BenchmarkDetail:
    """Change its note, its tags, or whether it is a baseline."""
    database = state_of(request).database
    with database.writing() as session:
        require_benchmark(session, benchmark_id)
        if wanted.note is not None:
            set_note(session, actor, benchmark_id, wanted.note)
        if wanted.tags is not None:
            set_tags(session, actor, benchmark_id, wanted.tags)
        if wanted.baseline is not None:
            set_baseline(session, actor, benchmark_id, wanted.baseline)
    with database.reading() as session:
        return benchmark_detail(session, benchmark_id)


@router.delete("/{benchmark_id}", status_code=204)
def delete(request: Request, actor: Builder, benchmark_id: BenchmarkId) -> None:
    """Delete it with its raw files, here and in its home. Refused (409) while it is being measured."""
    with state_of(request).database.writing() as session:
        delete_runs(session, actor, [benchmark_id])


@router.get("/{benchmark_id}/samples", dependencies=[needs("read")])
def samples(
    session: Reading,
    benchmark_id: BenchmarkId,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="The number of the last one that is known.")] = -1,
    most: Annotated[int, Query(ge=1, le=5_000)] = 2_000,
) -> SamplesAnswer:
    """What was seen while it ran, about once a second, the oldest first."""
    return samples_since(session, benchmark_id, after, most=most)


@router.get("/{benchmark_id}/record", dependencies=[needs("read")])
def record(session: Reading, benchmark_id: BenchmarkId) -> Benchmark:
    """All of it as it was written down, as docs/benchmark-schema.md has it."""
    return benchmark_records(session, [benchmark_id])[0]


@router.get(
    "/{benchmark_id}/files/{file_name:path}", dependencies=[needs("read")], response_class=Response, responses={200: GZIP}
)
def file(session: Reading, benchmark_id: BenchmarkId, file_name: FileName) -> Response:
    """A raw file of it, compressed with gzip."""
    require_benchmark(session, benchmark_id)
    return raw_file(file_name, one_file(session, benchmark_id, file_name))
