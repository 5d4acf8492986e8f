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

from roundhouse.build.hardware import Hardware
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkRun
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


def test_what_is_gone_is_named_and_the_rest_compared(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        gone = session.get(BenchmarkRun, FASTER)
        assert gone is not None
        gone.deleted_at = utc_now()
    text = text_of(browser("viewer"), address(BASE, FASTER, SAME, "unknown"))
    assert f"2 runs are not here: deleted, or never recorded: {FASTER}, unknown" in text
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
