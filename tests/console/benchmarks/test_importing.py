"""Files of results that somebody sends become runs without a home."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import re
from pathlib import Path

import pytest
from measured import add_benchmarks, benchmark_content
from sqlalchemy import select

from roundhouse.console.access.actor import Actor
from roundhouse.console.benchmarks.deleting import delete_runs, forget_run
from roundhouse.console.benchmarks.files import one_file
from roundhouse.console.benchmarks.importing import add_imported
from roundhouse.console.benchmarks.queries import benchmark_detail
from roundhouse.console.benchmarks.sent import SentContent, read_sent
from roundhouse.console.benchmarks.sent_files import SentFile
from roundhouse.console.benchmarks.whole_runs import benchmark_records
from roundhouse.console.database.database import Database
from roundhouse.console.errors import ConflictError, ForbiddenError
from roundhouse.console.models import BenchmarkRun, RecordFile
from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.exporting import json_of
from roundhouse.serve.benchmark.records import Benchmark

ANN = Actor(1, "ann", "operator", "browser", "x")
VLLM = {
    "date": "20260301-120000", "endpoint_type": "openai", "backend": "openai", "model_id": "llama", "tokenizer_id": "llama",
    "request_rate": "inf", "num_prompts": 8,
    "max_concurrency": 4, "duration": 2.0, "completed": 8, "failed": 0, "total_input_tokens": 1024,
    "total_output_tokens": 512, "request_throughput": 4.0, "output_throughput": 256.0, "total_token_throughput": 768.0,
    "mean_ttft_ms": 20.0, "median_ttft_ms": 19.0, "std_ttft_ms": 1.0, "p99_ttft_ms": 30.0,
    "mean_tpot_ms": 5.0, "median_tpot_ms": 5.0, "std_tpot_ms": 0.1, "p99_tpot_ms": 6.0,
    "mean_itl_ms": 5.0, "median_itl_ms": 5.0, "std_itl_ms": 0.1, "p99_itl_ms": 6.0,
    "mean_e2el_ms": 300.0, "median_e2el_ms": 300.0, "std_e2el_ms": 9.0, "p99_e2el_ms": 400.0,
}  # fmt: skip


def exported(*numbers: int) -> bytes:
    runs = []
    for number in numbers:
        content = benchmark_content(number, state="running" if number == 1 else "finished")
        fields = {each: getattr(content, each) for each in ("header", "state", "ended_at", "problem", "points", "prefill")}
        runs.append(Benchmark(**fields))
    return json_of(runs).encode()


def test_a_file_of_vllm_is_a_run_with_the_file_kept(database: Database) -> None:
    sent = SentFile(name="a folder/vllm.json", content=json.dumps(VLLM).encode())
    with database.writing() as session:
        (run,) = add_imported(session, ANN, read_sent([sent], server="vLLM 0.32 on 8×H200"))
    with database.reading() as session:
        found = benchmark_detail(session, run)
        assert gzip.decompress(one_file(session, run, "vllm.json")) == sent.content
    assert (found.state, found.is_imported, found.driver, found.host, found.home) == ("finished", True, "vllm", "", "")
    assert (found.hardware, found.name, found.concurrency_most) == ("vLLM 0.32 on 8×H200", "llama", 4)
    assert found.header.imported_from == "vllm.json"
    with pytest.raises(ConflictError, match=f"before, as run {run}"), database.writing() as session:
        add_imported(session, ANN, read_sent([sent], server="vLLM 0.32 on 8×H200"))
    with database.writing() as session:
        delete_runs(session, ANN, [run])
        assert session.scalars(select(BenchmarkRun)).all() == []
        assert session.scalars(select(RecordFile.name)).all() == []
        add_imported(session, ANN, read_sent([sent], server="vLLM 0.32 on 8×H200"))


def test_what_was_exported_comes_back_as_it_was(database: Database) -> None:
    runs = read_sent([SentFile(name="runs.json", content=exported(0, 1))])
    with database.writing() as session:
        ids = add_imported(session, ANN, runs)
    with database.reading() as session:
        first, second = benchmark_records(session, ids)
    content = benchmark_content(0)
    assert (first.points, first.prefill, first.ended_at) == (content.points, content.prefill, content.ended_at)
    assert first.header == content.header.model_copy(update={"imported_from": "runs.json"})
    assert second.state == "interrupted"
    with pytest.raises(ConflictError, match="nothing was imported"), database.writing() as session:
        add_imported(session, ANN, [*read_sent([SentFile(name="x", content=exported(2))]), *runs])
    with database.reading() as session:
        assert len(session.scalars(select(BenchmarkRun.id)).all()) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b"not json", b"\xff\xfe", json.dumps({**VLLM, "duration": 0}).encode(), exported(0)[:-30], exported()],
)
def test_what_is_no_result_is_refused_without_naming_our_folders(content: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_sent([SentFile(name="../../x.json", content=content)])
    assert "/tmp" not in refused.value.message


def test_numbers_that_cannot_be_are_refused(database: Database) -> None:
    content = benchmark_content(0)
    broken = dataclasses.replace(content, points=(content.points[0].model_copy(update={"duration_s": 0.0}),))
    with pytest.raises(UsageError, match="cannot be"), database.writing() as session:
        add_imported(session, ANN, [broken])
    viewer = Actor(1, "eve", "viewer", "browser", "x")
    with pytest.raises(ForbiddenError), database.writing() as session:
        add_imported(session, viewer, [content])
    with database.reading() as session:
        assert session.scalars(select(BenchmarkRun)).all() == []


@pytest.mark.parametrize("name", ["..", "", "/", "a\x00b", "\N{STEAM LOCOMOTIVE}" * 100, "x" * 5000])
def test_a_file_may_be_called_anything(database: Database, name: str) -> None:
    with database.writing() as session:
        (run,) = add_imported(session, ANN, read_sent([SentFile(name=name, content=json.dumps(VLLM).encode())]))
    with database.reading() as session:
        assert benchmark_detail(session, run).header.imported_from


def changed(*path: str | int, value: object) -> bytes:
    """An export in which one thing is something else."""
    told = json.loads(exported(0))
    place = told
    for key in ("runs", 0, *path[:-1]):
        place = place[key]
    place[path[-1]] = value
    return json.dumps(told).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("header", "began_at"), "2026-03-01T12:00:00"),
        (("header", "began_at"), "0001-01-01T00:00:00+14:00"),
        (("header", "subject", "manifest", "recipe"), "int4"),
        (("header", "subject", "manifest", "recipe", "target"), {"a": 1}),
        (("header", "subject", "settings"), {"kv": {"tokens": "many"}}),
        (("header", "subject", "settings"), {"kv": 3}),
        (("points", 0, "duration_s"), float("inf")),
        (("points", 0, "duration_s"), float("nan")),
        (("points", 0, "ttft", "p50"), float("nan")),
    ],
)
def test_what_no_page_could_show_is_not_taken(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(UsageError):
        read_sent([SentFile(name="export.json", content=changed(*path, value=value))])


def aiperf(name: str) -> SentFile:
    """A real output of aiperf."""
    folder = Path(__file__).parents[2] / "serve" / "benchmark" / "importing" / "data" / "aiperf"
    return SentFile(name=name, content=(folder / name).read_bytes())


def test_single_requests_come_with_their_result(database: Database) -> None:
    summary, requests = aiperf("profile_export_aiperf.json"), aiperf("profile_export.jsonl")
    (alone,) = read_sent([summary])
    (both,) = read_sent([requests, summary])
    assert both.points[0].ttft is not None
    assert both.points[0].ttft != alone.points[0].ttft, "of single requests, not as aiperf rounds them"
    with database.writing() as session:
        (run,) = add_imported(session, ANN, [both])
    with database.reading() as session:
        found = benchmark_detail(session, run)
        assert [file.name for file in found.files] == ["profile_export.jsonl", "profile_export_aiperf.json"]
        assert gzip.decompress(one_file(session, run, "profile_export.jsonl")) == requests.content
    assert found.header.imported_from == "profile_export_aiperf.json"


def test_results_of_the_same_are_one_run_and_of_another_another() -> None:
    files = [
        SentFile(name=f"c{at}.json", content=json.dumps({**VLLM, "max_concurrency": at, "model_id": model}).encode())
        for at, model in ((1, "llama"), (4, "llama"), (4, "qwen"))
    ]
    runs = read_sent([*files, SentFile(name="ours.json", content=exported(0))])
    assert sorted(run.header.concurrencies for run in runs) == [(1, 4), (1, 8, 16, 32), (4,)]
    (one,) = (run for run in runs if run.header.concurrencies == (1, 4))
    assert [name for name, _ in one.files] == ["c1.json", "c4.json"]


def files_of(run: SentContent) -> dict[str, bytes]:
    """What is kept with a run, unpacked, by name."""
    return {name: gzip.decompress(content) for name, content in run.files}


def test_of_our_own_exports_no_copy_is_kept() -> None:
    runs = read_sent([SentFile(name="ours.json", content=exported(0, 2, 3))])
    assert [files_of(run) for run in runs] == [{}, {}, {}]


def test_a_file_of_several_runs_is_kept_once_and_the_others_say_where() -> None:
    lines = "\n".join(json.dumps({**VLLM, "model_id": model}) for model in ("llama", "qwen", "glm")).encode()
    first, *others = read_sent([SentFile(name="all.jsonl.json", content=lines)])
    assert files_of(first) == {"all.jsonl.json": lines}
    assert len(others) == 2
    for run in others:
        assert files_of(run) == {"left-out.txt": f"all.jsonl.json: kept with run {first.header.id}\n".encode()}
        assert run.too_large == ()


@pytest.mark.parametrize(
    ("called", "kept"),
    [
        (("3-a.json", "a.json", "a.json"), ["3-a.json", "a.json", "2-a.json"]),
        (("2-a.json", "a.json", "a.json"), ["2-a.json", "a.json", "3-a.json"]),
        (("a.json", "b/a.json", "c/a.json"), ["a.json", "2-a.json", "3-a.json"]),
        (("left-out.txt", "a.json", "b.json"), ["2-left-out.txt", "a.json", "b.json"]),
    ],
)
def test_no_file_takes_the_place_of_another(called: tuple[str, ...], kept: list[str]) -> None:
    contents = [json.dumps({**VLLM, "max_concurrency": at}).encode() for at in (1, 2, 4)]
    (run,) = read_sent([SentFile(name=name, content=content) for name, content in zip(called, contents, strict=True)])
    assert files_of(run) == dict(zip(kept, contents, strict=True))


def test_a_file_that_is_too_large_to_be_kept_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    large = json.dumps({**VLLM, "notes": random.Random(0).randbytes(4000).hex()}).encode()
    small = json.dumps({**VLLM, "max_concurrency": 8}).encode()
    monkeypatch.setattr("roundhouse.console.benchmarks.sent_files.MOST_FILE_BYTES", 3000)
    (run,) = read_sent([SentFile(name="large.json", content=large), SentFile(name="small.json", content=small)])
    kept = files_of(run)
    assert (list(kept), run.too_large) == (["small.json", "left-out.txt"], ("large.json",))
    assert re.fullmatch(rb"large\.json: [4-9],\d{3} bytes compressed; 3,000 are kept at most\n", kept["left-out.txt"])


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([("profile_export.jsonl", b"{}")], "it is not clear of which result"),
        ([("a.jsonl", b"{}"), ("b.jsonl", b"{}"), ("c.json", b"{}")], "it is not clear of which result"),
        ([("x.jsonl", b"{}"), ("vllm.json", json.dumps(VLLM).encode())], "vllm.json is no result of it"),
        ([("x.jsonl", b"not json"), ("aiperf.json", aiperf("profile_export_aiperf.json").content)], "x.jsonl"),
        ([("a.json", json.dumps(VLLM).encode()), ("b.json", json.dumps(VLLM).encode())], "a.json and b.json are the same"),
        ([("a.json", exported(0)), ("b.json", exported(0, 2))], "b00000000000 is there twice"),
    ],
)
def test_what_does_not_belong_together_is_refused_by_name(sent: list[tuple[str, bytes]], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_sent([SentFile(name=name, content=content) for name, content in sent])
    assert said in refused.value.message
    assert "/tmp" not in refused.value.message


def test_a_run_that_was_deleted_here_and_is_still_in_its_home_says_so(database: Database) -> None:
    (sent,) = read_sent([SentFile(name="runs.json", content=exported(0))])
    with database.writing() as session:
        (run,) = add_benchmarks(session, host="far", home="/srv/far")
    with pytest.raises(ConflictError, match=f"before, as run {run}"), database.writing() as session:
        add_imported(session, ANN, [sent])
    with database.writing() as session:
        delete_runs(session, ANN, [run])
    said = f"run {run} was deleted here, and its home on far still has it"
    with pytest.raises(ConflictError, match=said), database.writing() as session:
        add_imported(session, ANN, [sent])
    with database.writing() as session:
        forget_run(session, run)  # as the worker of its home does
        assert add_imported(session, ANN, [sent]) == [run]
