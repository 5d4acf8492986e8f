"""Importing results of other tools. ``data/`` holds real ones; its README says how they were made."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundhouse.build.home import Home
from roundhouse.errors import UsageError
from roundhouse.serve.benchmark.importing import import_results, read_results
from roundhouse.serve.benchmark.store import BenchmarkStore

DATA = Path(__file__).parent / "data"
AIPERF = DATA / "aiperf"
SUMMARY = AIPERF / "profile_export_aiperf.json"
DETAILED, PLAIN, ASKED = (DATA / "vllm" / f"{name}.json" for name in ("c1-detailed", "c2", "c2-percentiles"))


def changed(source: Path, target: Path, **changes: Any) -> Path:
    """A copy with other values; None takes a key away."""
    content = {**json.loads(source.read_text(encoding="utf-8")), **changes}
    target.write_text(json.dumps({key: value for key, value in content.items() if value is not None}), encoding="utf-8")
    return target


def test_an_aiperf_folder_is_read_from_its_single_requests() -> None:
    (run,) = read_results([AIPERF])
    (point,) = run.points
    assert (run.header.driver, run.header.driver_version, run.header.seed) == ("aiperf", "0.13.0", 7)
    assert (run.header.subject.name, run.header.subject.url) == ("demo", "http://127.0.0.1:19000")
    assert run.header.command.startswith("aiperf profile --model 'demo'")
    assert (run.header.concurrencies, run.header.repeats, run.state) == ((2,), 1, "finished")
    assert (run.header.workload.input_tokens, run.header.workload.output_tokens) == (64, 16)
    assert (point.completed, point.input_tokens, point.output_tokens, point.tokens_from) == (6, 384, 96, "usage")
    assert point.ttft is not None
    assert point.ttft.count == 6


def test_aiperfs_own_summary_says_the_same_as_its_requests(tmp_path: Path) -> None:
    alone = shutil.copy(SUMMARY, tmp_path)
    (of_summary,) = read_results([Path(alone)])[0].points
    (of_requests,) = read_results([AIPERF])[0].points
    assert of_summary.duration_s == pytest.approx(of_requests.duration_s, rel=1e-3)
    for name in ("ttft", "inter_token", "end_to_end"):
        told, counted = getattr(of_summary, name), getattr(of_requests, name)
        assert told.count == counted.count
        for part in ("mean", "p50", "p90", "p95", "p99"):
            assert getattr(told, part) == pytest.approx(getattr(counted, part), rel=1e-3)


def test_what_failed_and_what_was_cancelled_is_told_apart_in_a_summary(tmp_path: Path) -> None:
    errors = [
        {"error_details": {"type": "Too Many Requests", "code": 429, "message": "x"}, "count": 2},
        {"error_details": {"type": "RequestCancellationError", "code": 499, "message": "x"}, "count": 3},
    ]
    (run,) = read_results([changed(SUMMARY, tmp_path / "a.json", error_summary=errors)])
    assert run.points[0].failed == {"http 429": 2}
    assert run.points[0].cancelled == 3


def test_vllms_single_requests_are_summed_up_as_ours_are() -> None:
    (run,) = read_results([DETAILED], server="vLLM 0.32 on 2 cores", model="SmolLM2-135M")
    (point,) = run.points
    told = json.loads(DETAILED.read_text(encoding="utf-8"))
    assert (point.concurrency, point.completed, point.input_tokens, point.output_tokens) == (1, 6, 288, 72)
    assert point.duration_s == pytest.approx(told["duration"], rel=0.01)
    assert point.ttft is not None
    assert point.inter_token is not None
    for ours, name in ((point.ttft, "ttft"), (point.inter_token, "tpot")):
        assert ours.mean == pytest.approx(told[f"mean_{name}_ms"] / 1e3)
        assert ours.p50 == pytest.approx(told[f"median_{name}_ms"] / 1e3)
        assert ours.p99 == pytest.approx(told[f"p99_{name}_ms"] / 1e3)
        assert ours.p90 is not None
    subject = run.header.subject
    assert (subject.name, subject.model, subject.server, subject.url) == ("demo", "SmolLM2-135M", "vLLM 0.32 on 2 cores", None)


def test_what_a_file_does_not_say_stays_unknown() -> None:
    (run,) = read_results([PLAIN])
    (point,) = run.points
    assert point.ttft is not None
    assert (point.ttft.p90, point.ttft.p95, point.ttft.count) == (None, None, None)
    assert point.ttft.p99 == pytest.approx(0.3994310314563336)
    assert point.end_to_end is not None  # latencies of single requests are in every file
    assert point.end_to_end.count == 6
    header = run.header
    assert (header.seed, header.command, header.driver_version, header.environment.host) == (None, "", None, "")
    assert header.environment.hardware is None
    assert header.environment.versions == {}


def test_percentiles_that_were_asked_for_are_taken() -> None:
    (point,) = read_results([ASKED])[0].points
    assert point.inter_token is not None
    assert point.inter_token.p95 == pytest.approx(0.062230896364119616)
    assert point.end_to_end is not None
    assert point.end_to_end.p90 == pytest.approx(0.9197519154986367)


def test_a_latency_without_what_every_one_has_is_unknown(tmp_path: Path) -> None:
    (point,) = read_results([changed(PLAIN, tmp_path / "a.json", p99_ttft_ms=None)])[0].points
    assert point.ttft is None
    assert point.inter_token is not None


def test_requests_without_tokens_are_failed_ones_in_vllms_results_too(tmp_path: Path) -> None:
    told = json.loads(DETAILED.read_text(encoding="utf-8"))
    errors = ["", "", "Too Many Requests", "Traceback (most recent call last):\n  …\naiohttp.ClientPayloadError: x", "", "odd"]
    lens = [12, 0, 0, 0, 12, 0]
    path = changed(DETAILED, tmp_path / "a.json", errors=errors, output_lens=lens, ttfts=[0.3, 0.3, 0.0, 0.3, 0.0, 0.0])
    (point,) = read_results([path])[0].points
    assert point.completed == 1
    assert point.failed == {"empty answer": 2, "http 429": 1, "disconnected": 1, "error": 1}
    assert point.ttft is not None
    assert (point.ttft.count, point.ttft.p50) == (1, pytest.approx(0.3))
    assert point.input_tokens == told["input_lens"][0]


def test_files_of_the_same_are_one_run_with_repeats(tmp_path: Path) -> None:
    (run,) = read_results([ASKED, DETAILED, PLAIN])
    assert run.header.concurrencies == (1, 2)
    assert run.header.repeats == 2
    assert [(point.concurrency, point.repeat) for point in run.points] == [(1, 0), (2, 0), (2, 1)]
    assert len(set(run.header.imported_sha256)) == 3


def test_files_of_something_else_are_runs_of_their_own(tmp_path: Path) -> None:
    other_model = changed(PLAIN, tmp_path / "model.json", model_id="other")
    longer = changed(PLAIN, tmp_path / "longer.json", total_input_tokens=576)
    runs = read_results([PLAIN, other_model, longer, AIPERF])
    assert len(runs) == 4
    assert {run.header.subject.name for run in runs} == {"demo", "other"}


def test_results_that_were_appended_to_one_file_are_one_run(tmp_path: Path) -> None:
    together = tmp_path / "all.json"
    together.write_text(f"{PLAIN.read_text(encoding='utf-8')}\n{ASKED.read_text(encoding='utf-8')}", encoding="utf-8")
    (run,) = read_results([together])
    assert [(point.concurrency, point.repeat) for point in run.points] == [(2, 0), (2, 1)]


def test_times_without_a_zone_are_this_machines(tmp_path: Path) -> None:
    (run,) = read_results([PLAIN])
    assert run.header.began_at == datetime(2026, 11, 30, 11, 1, 44).astimezone(UTC)
    assert run.header.began_at.tzinfo is UTC


def test_imported_runs_are_in_the_history_with_their_files(tmp_path: Path) -> None:
    home = Home(tmp_path)
    taken = import_results(home, [PLAIN, DETAILED, AIPERF], server="a server")
    assert {run.id for run in taken} == {run.id for run in BenchmarkStore(home)}
    assert all(run.state == "finished" for run in taken)
    assert all(run.ended_at is not None and (run.ended_at - run.header.began_at).total_seconds() < 600 for run in taken)
    (of_vllm,) = (run for run in taken if run.header.driver == "vllm")
    kept = tmp_path / "benchmarks" / of_vllm.id / "raw" / "c2-r0" / "c2.json.gz"
    assert gzip.decompress(kept.read_bytes()) == PLAIN.read_bytes()
    (of_aiperf,) = (run for run in taken if run.header.driver == "aiperf")
    assert {path.name for path in (tmp_path / "benchmarks" / of_aiperf.id / "raw" / "c2-r0").iterdir()} == {
        "profile_export_aiperf.json.gz",
        "profile_export.jsonl.gz",
    }


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (run,) = import_results(home, [PLAIN])
    renamed = shutil.copy(PLAIN, tmp_path / "renamed.json")
    with pytest.raises(UsageError, match=rf"renamed\.json was imported before, as run {run.id}"):
        import_results(home, [DETAILED, Path(renamed)])
    with pytest.raises(UsageError, match=r"c1-detailed\.json are the same"):
        import_results(home, [DETAILED, DETAILED])
    assert len(list(BenchmarkStore(home))) == 1


@pytest.mark.parametrize(
    ("source", "changes", "says"),
    [
        (PLAIN, {"duration": None}, "is no result that can be imported: it holds date"),
        (PLAIN, {"total_output_tokens": None}, "the key 'total_output_tokens' is missing"),
        (PLAIN, {"model_id": 3}, "the key 'model_id' is missing, or is no text"),
        (PLAIN, {"request_rate": 4.0}, "at a rate, not at a fixed concurrency"),
        (PLAIN, {"date": "yesterday"}, "the key 'date' is no time"),
        (DETAILED, {"ttfts": [0.1]}, "are not of one length"),
        (DETAILED, {"ttfts": ["a"] * 6}, "its single requests cannot be"),
        (SUMMARY, {"input_config": {}}, "the key 'input_config.phases' is missing"),
        (SUMMARY, {"benchmark_duration": None}, "the key 'benchmark_duration.avg' is missing"),
        (SUMMARY, {"start_time": "now"}, "the key 'start_time' is no time"),
        (SUMMARY, {"time_to_first_token": {"unit": "s"}}, "time_to_first_token is not in milliseconds"),
        (SUMMARY, {"error_summary": [3]}, "it holds what such a file does not"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, source: Path, changes: dict[str, Any], says: str) -> None:
    path = changed(source, tmp_path / "wrong.json", **changes)
    with pytest.raises(UsageError, match=says) as caught:
        read_results([path])
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("{", "is not JSON"),
        ("[1]", "no JSON object"),
        ('{"a": 1}', "no result that can be imported: it holds a"),
        ("{}", "it holds nothing"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "thing.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=says) as caught:
        read_results([path])
    assert str(path) in caught.value.message


def test_a_missing_file_and_a_folder_of_something_else_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.json cannot be read: No such file"):
        read_results([tmp_path / "nowhere.json"])
    with pytest.raises(UsageError, match=r"there is no profile_export_aiperf\.json"):
        read_results([tmp_path])


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=7)
)


@given(st.data(), st.sampled_from([SUMMARY, DETAILED, ASKED]))
def test_whatever_a_file_holds_is_a_result_or_an_error_in_words(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, source: Path
) -> None:
    content = json.loads(source.read_text(encoding="utf-8"))
    for key in data.draw(st.lists(st.sampled_from(sorted(content)), max_size=3)):
        content[key] = data.draw(VALUES)
    path = tmp_path_factory.mktemp("any") / "any.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        (run,) = read_results([path])
    except UsageError:
        return
    assert run.points[0].output_tokens_per_s >= 0
