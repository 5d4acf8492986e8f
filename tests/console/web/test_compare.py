"""Runs side by side, as somebody reads them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from browsing import BrowserMaker
from built import manifest_of
from counting import count_queries
from reading import text_of
from runs_made_up import H200, add_run
from sqlalchemy import update

from roundhouse.build.hardware import Hardware
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkPoint, BenchmarkRun
from roundhouse.serve.benchmark.workload import Workload

BASE, FASTER, SAME = "a" * 12, "b" * 12, "c" * 12


def address(*ids: str, **more: object) -> str:
    return f"/benchmarks/compare?{urlencode([('run', each) for each in ids] + [(k, str(v)) for k, v in more.items()])}"


@pytest.fixture
def measured(database: Database) -> Database:
    """Three runs: one twice as fast as the first, and one as fast; five repeats each."""
    with database.writing() as session:
        usual = {1: (30, 31, 32, 33, 34), 8: (150, 151, 152, 153, 154)}
        add_run(session, BASE, manifest=manifest_of("1" * 16, "slow", weights="bf16"), speeds=usual)
        twice = {n: [2 * each for each in speeds] for n, speeds in usual.items()}
        add_run(session, FASTER, manifest=manifest_of("2" * 16, "fast", weights="int4_awq"), speeds=twice)
        add_run(session, SAME, manifest=manifest_of("1" * 16, "slow", weights="bf16"), speeds=usual | {32: (300, 310, 320)})
    return database


def test_ratios_come_with_an_interval_and_a_word(browser: BrowserMaker, measured: Database) -> None:
    text = text_of(browser("viewer"), address(BASE, FASTER, SAME))
    assert "2.000 × 1.961 – 2.040 faster" in text
    assert "1.000 × 0.981 – 1.020 no clear difference" in text
    assert "Tokens/s at concurrency" in text
    assert "At 8" in text  # where all of them were measured


def test_another_base_turns_the_ratio_around(browser: BrowserMaker, measured: Database) -> None:
    text = text_of(browser("viewer"), address(BASE, FASTER, base=FASTER))
    assert re.search(r"0\.500 × 0\.\d+ – 0\.\d+ slower", text)


def test_a_concurrency_can_be_chosen(browser: BrowserMaker, measured: Database) -> None:
    text = text_of(browser("viewer"), address(BASE, SAME, at=32))
    assert "one side has no value" in browser("admin").get(address(BASE, SAME, at=32)).text
    assert "At 32" in text


def test_what_differs_is_told_and_what_is_equal_on_demand(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, address(BASE, FASTER))
    assert "weights bf16 differs: int4_awq" in text
    assert "kv_cache" not in text
    everything = text_of(viewer, address(BASE, FASTER, all=1))
    assert "kv_cache fp8 fp8" in everything
    assert "Hide what is equal" in everything


def test_equal_runs_differ_in_nothing(browser: BrowserMaker, measured: Database) -> None:
    assert "Nothing that was written down" in text_of(browser("viewer"), address(BASE, SAME))


def test_pairs_are_told_apart_from_runs_that_took_no_turns(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        for id_, factor in (("d" * 12, 1.0), ("e" * 12, 1.1)):
            wild = [factor * each for each in (10, 50, 20, 80, 40, 30)]  # repeats differ far more than the runs
            add_run(session, id_, speeds={8: wild}, turns="some")
    text = text_of(browser("viewer"), address("d" * 12, "e" * 12))
    assert re.search(r"1\.100 × 1\.100 – 1\.100.* faster, by turns", text)


def test_too_few_repeats_make_no_interval(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_run(session, BASE, speeds={8: (100, 101)})
        add_run(session, FASTER, speeds={8: (200, 201)})
    assert "an interval takes 3 repeats of both, and there are 2" in text_of(browser("viewer"), address(BASE, FASTER))


def test_what_cannot_be_compared_is_warned_of(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        slow = Hardware(name="a CPU", kind="cpu", cores=2, total_memory=2**34, free_memory=2**33)
        add_run(session, "f" * 12, hardware=slow, workload=Workload(input_tokens=999), driver="loop", other_cores=1.0)
    text = text_of(browser("viewer"), address(BASE, "f" * 12))
    for warning in ("not asked the same: 128 in, 64 out; 999 in, 64 out", f"different hardware: {H200.name}; a CPU",
                    "different programs: aiperf; loop", "busy during run 2"):  # fmt: skip
        assert warning in text, warning


def test_a_run_is_called_by_the_start_of_its_id(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    answer = viewer.get(address("aaa", "bb", "a", SAME, without="ccc", base=FASTER, at=8))
    assert str(answer.url).endswith(address(BASE, FASTER, base=FASTER, at=8)), "an address that one would copy"
    with measured.writing() as session:
        add_run(session, "a" * 4 + "b" * 8)
    text = text_of(viewer, address("aaa", FASTER, "never"))
    assert f"2 runs have an id that begins with aaa: {BASE}, aaaabbbbbbbb" in text
    assert "No run here has the id never, or one that begins so" in text
    assert "The others are compared" in text
    assert str(viewer.get(address("a%", FASTER)).url).endswith(address("a%", FASTER)), "a start, and no pattern"


def test_what_is_gone_is_named_and_the_rest_compared(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        gone = session.get(BenchmarkRun, FASTER)
        assert gone is not None
        gone.deleted_at = utc_now()
    text = text_of(browser("viewer"), address(BASE, FASTER, SAME, "unknown"))
    assert f"2 runs are not here, deleted or never recorded: {FASTER}, unknown" in text
    assert "no clear difference" in text
    assert "Choose runs" in text_of(browser("admin"), address("unknown"))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (urlencode([("run", f"{n:012x}") for n in range(201)]), "201 runs are too many"),
        (f"run={BASE}&at=none", "A concurrency is a whole number above 0"),
    ],
)
def test_what_cannot_be_asked_is_said(browser: BrowserMaker, database: Database, query: str, problem: str) -> None:
    assert problem in text_of(browser("viewer"), f"/benchmarks/compare?{query}", 422)


def test_forms_lead_to_the_address_one_would_copy(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")

    def lead(query: str) -> list[tuple[str, str]]:
        answer: Any = viewer.get(f"/benchmarks/compare?{query}", follow_redirects=False)
        assert answer.status_code == 303, query
        return parse_qsl(str(answer.headers["location"]).partition("?")[2])

    assert lead(f"run={BASE}&run={FASTER}&run={SAME}&without={FASTER}") == [("run", BASE), ("run", SAME)]
    assert lead(f"run={BASE}&run={FASTER}&at=1&at=8&run=") == [("run", BASE), ("run", FASTER), ("at", "8")]
    assert lead(f"run={BASE}&base={FASTER}&run={FASTER}") == [("run", BASE), ("run", FASTER), ("base", FASTER)]
    assert lead(f"run={BASE}&run={FASTER},+{SAME}") == [("run", BASE), ("run", FASTER), ("run", SAME)]


def test_many_runs_are_told_by_value(browser: BrowserMaker, database: Database) -> None:
    ids = [f"{n:012x}" for n in range(30)]
    with database.writing() as session:
        for number, id_ in enumerate(ids):
            add_run(session, id_, versions={"torch": "2.13.0" if number < 28 else "2.14.0"})
    viewer = browser("viewer")
    with count_queries(database) as few:
        viewer.get(address(*ids[:2]))
    with count_queries(database) as many:
        text = text_of(viewer, address(*ids))
    assert len(many) == len(few)
    assert "torch 2.13.0 28 1, 2, 3" in text
    assert "2.14.0 2 29, 30" in text
    assert "12 of 30 are drawn" in text


def test_nobody_needs_more_than_to_read(browser: BrowserMaker, measured: Database) -> None:
    assert browser().get(address(BASE), follow_redirects=False).status_code == 303
    assert "Choose runs in the list" in text_of(browser("viewer"), "/benchmarks/compare")


@pytest.mark.parametrize("server", ["[lab] vLLM", "[", '{"a": 1}', "[1, 2]"])
def test_somebodys_words_are_no_data(browser: BrowserMaker, measured: Database, server: str) -> None:
    """Whatever a text looks like, it is shown as it was written."""
    with measured.writing() as session:
        row = session.get_one(BenchmarkRun, SAME)
        row.header = row.header | {"subject": row.header["subject"] | {"server": server}}
    assert server in text_of(browser("viewer"), address(BASE, SAME, all=1))


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("output_tokens_per_s", "÷ base: output tokens/s over the base's at 8 at once"),
        ("requests_per_s", "÷ base: requests/s over the base's at 8 at once"),
        ("ttft_p50", "÷ base: TTFT p50 over the base's at 8 at once"),
        ("ttft_p99", "÷ base: TTFT p99 over the base's at 8 at once"),
        ("inter_token_p50", "÷ base: inter-token p50 over the base's at 8 at once"),
        ("end_to_end_p50", "÷ base: end to end p50 over the base's at 8 at once"),
    ],
)
def test_ratios_are_of_the_quantity_that_was_chosen(browser: BrowserMaker, measured: Database, by: str, said: str) -> None:
    """The second is twice as fast in everything: rates double, and latencies halve."""
    viewer = browser("viewer")
    text = text_of(viewer, address(BASE, FASTER, by=by))
    assert said in text
    assert re.search(
        r"2\.000 × 1\.9\d+ – 2\.0\d+ faster" if by.endswith("_per_s") else r"0\.500 × 0\.4\d+ – 0\.5\d+ faster", text
    )
    back = text_of(viewer, address(BASE, FASTER, base=FASTER, by=by))
    assert re.search(r"(0\.500|2\.000) × [\d.]+ – [\d.]+ slower", back)
    page = viewer.get(address(BASE, FASTER, by=by)).text
    assert f'value="{by}" selected' in page
    assert ("End to end p50, ms" in text) == (by == "end_to_end_p50")


def test_the_usual_quantity_is_in_no_address_and_another_stays(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    page = viewer.get(address(BASE, FASTER)).text
    assert 'value="output_tokens_per_s" selected' in page
    assert 'type="hidden" name="by"' not in page
    assert 'type="hidden" name="by" value="ttft_p50"' in viewer.get(address(BASE, FASTER, by="ttft_p50")).text
    answer: Any = viewer.get(f"{address(BASE, FASTER)}&by=ttft_p50&by=output_tokens_per_s", follow_redirects=False)
    assert parse_qsl(str(answer.headers["location"]).partition("?")[2]) == [("run", BASE), ("run", FASTER)]
    assert "not compared by this" in text_of(viewer, address(BASE, FASTER, by="luck"), 422)


def test_what_one_of_them_did_not_measure_has_no_ratio(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        session.execute(
            update(BenchmarkPoint).where(BenchmarkPoint.benchmark_id == SAME).values(ttft_p50=None, record={"ttft": None})
        )
    for by in ("ttft_p50", "ttft_p99"):
        assert "one side has no value" in browser("viewer", by.replace("_", "")).get(address(BASE, SAME, by=by)).text


def test_prefill_stands_beside_with_ratios_over_the_base(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        usual = {512: (0.100, 0.101, 0.102), 2048: (0.400, 0.404, 0.408)}
        add_run(session, BASE, prefill=usual)
        add_run(session, FASTER, prefill={length: [each / 2 for each in times] for length, times in usual.items()})
        add_run(session, SAME, prefill={2048: usual[2048], 64: (0.0, 0.0, 0.0)})
        add_run(session, "f" * 12)
    viewer = browser("viewer")
    text = text_of(viewer, address(BASE, FASTER, SAME, "f" * 12))
    assert "Prefill by prompt length" in text
    assert "512 tokens 2,048 tokens Tokens/s ÷ base Tokens/s ÷ base" in text, "of 64 nothing was answered"
    assert text.count("2.000 × 1.961 – 2.040 at 90% faster") == 2
    assert re.search(r"3 tiny — — 5,069 1\.000 × 0\.980 – 1\.020 at 90% no clear difference", text)
    assert "Prefill by prompt length" not in text_of(viewer, address("f" * 12))
    turned = text_of(viewer, address(BASE, FASTER, base=FASTER))
    assert turned.count("0.500 × 0.490 – 0.510 at 90% slower") == 2


def test_prefill_by_turns_is_compared_repeat_by_repeat(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        for id_, factor in ((BASE, 1.0), (FASTER, 2.0)):
            add_run(session, id_, prefill={512: [each / factor for each in (0.1, 0.5, 0.2, 0.9, 0.3)]}, turns="some")
    assert "2.000 × 2.000 – 2.000 at 93.8% faster, by turns" in text_of(browser("viewer"), address(BASE, FASTER))


def test_of_many_lengths_those_are_shown_that_most_have(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_run(session, BASE, prefill={64 * number: (0.1,) for number in range(1, 8)})
        add_run(session, FASTER, prefill={64 * number: (0.1,) for number in range(1, 31)})
    text = text_of(browser("viewer"), address(BASE, FASTER))
    assert "22 more lengths are left out" in text
    assert all(f"{64 * number} tokens" in text for number in range(1, 9))
    assert "1,920 tokens" not in text


def test_everything_takes_few_statements_however_much_there_is(browser: BrowserMaker, database: Database) -> None:
    ids = [f"{number:012x}" for number in range(40)]
    with database.writing() as session:
        for number, id_ in enumerate(ids):
            prefill = dict.fromkeys((64, 512), (0.1, 0.11, 0.12))
            add_run(session, id_, prefill=prefill, turns="some" if number % 2 else None)
    viewer = browser("viewer")
    viewer.get(address(*ids))
    for by in ("output_tokens_per_s", "ttft_p99"):
        with count_queries(database) as few:
            viewer.get(address(*ids[:2], by=by))
        with count_queries(database) as many:
            viewer.get(address(*ids, by=by))
        assert len(few) == len(many) <= 16
