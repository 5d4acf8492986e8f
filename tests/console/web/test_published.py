"""Published tables beside what was measured here."""

from __future__ import annotations

import re

from browsing import BrowserMaker
from built import add_built
from counting import count_queries
from reading import text_of
from runs_made_up import add_findings, add_run

from roundhouse.build.planner.published_tables import read_tables
from roundhouse.console.benchmarks.published import beside_published
from roundhouse.console.benchmarks.published_tables import published_tables
from roundhouse.console.database.database import Database


def test_published_numbers_are_told_with_their_source(browser: BrowserMaker, database: Database) -> None:
    text = text_of(browser("viewer"), "/benchmarks/published")
    for part in (
        "on other models and machines; nobody here has measured it",
        "KV tokens 686,000 1,370,000 +100%",
        "Output at 32 tokens/s, capture 1,558 1,489 -4.4%",
        "out of memory 2,192",
        "Most output — — +41%",
        "Cost per token at these — — -30%",
        "Checkpoint GiB 705 421 -40%",
        "Prefill tokens/s 10,160 8,660 -14.8%",
        "Output at 8 — — -0.43%",
        "gsm8k % 94.2",
        "Cloudflare, August 2026, as reported by two articles",
    ):
        assert part in text, part
    assert text.count("No two runs here differ in this alone") == 3


def test_every_published_speed_of_the_planner_is_on_the_page() -> None:
    shown = {side for table in published_tables() for line in table.lines for side in (line.before, line.after)}
    rows = read_tables().rows
    speeds = {name: row.published for name, row in rows.items() if row.unit == "tok/s" and row.section != "reference"}
    assert {name for name, value in speeds.items() if value not in shown} == set()


def test_runs_that_differ_in_one_thing_stand_beside_them(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        for number, (weights, kv_cache, guard) in enumerate(
            (("bf16", "bf16", "tags"), ("bf16", "fp8", "tags"), ("int4_awq", "fp8", "tags"), ("bf16", "fp8", "off"))
        ):
            manifest = add_built(session, f"{number:016x}", f"engine-{number}", weights=weights, kv_cache=kv_cache, guard=guard)
            run = add_run(session, f"{number:012x}", manifest=manifest, speeds={8: (100.0 + 50 * number,)}, day=number)
        add_findings(session, "e" * 12, run, {"arithmetic": -0.5})
    text = text_of(browser("viewer"), "/benchmarks/published")
    assert "bf16 fp8 Change KV tokens 8,192 8,192 +0.00% Output at 8 tokens/s 100 150 +50%" in text
    assert re.search(r"bf16 int4_awq Change Checkpoint MiB .* KV tokens .* Output at 8 tokens/s 150 200 \+33%", text)
    assert "off tags Change Output at 8 tokens/s 250 150 -40%" in text
    assert "engine-3" in text
    assert "-0.5 passed" in text
    assert "the published model" not in text
    with database.reading() as session:
        by_technique = {each.published.technique: each.pairs for each in beside_published(session)}
    assert [pair.runs for pair in by_technique["kv_cache"]] == [(f"{0:012x}", f"{1:012x}")]


def test_other_hardware_makes_no_pair_and_statements_stay(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    viewer.get("/benchmarks/published")
    with count_queries(database) as few:
        viewer.get("/benchmarks/published")
    with database.writing() as session:
        one = add_built(session, "1" * 16, "one", kv_cache="bf16")
        other = add_built(session, "2" * 16, "other", kv_cache="fp8")
        add_run(session, "a" * 12, manifest=one)
        add_run(session, "b" * 12, manifest=other, driver="loop")
    with count_queries(database) as many:
        assert "No two runs here differ" in text_of(viewer, "/benchmarks/published")
    assert len(many) == len(few)
