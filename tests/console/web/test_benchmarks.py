"""The pages of benchmark runs, as browsers meet them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from browsing import Browser, BrowserMaker
from building import add_job
from built import ID, add_built
from counting import count_queries
from deployed import add_deployment
from measured import HOME, HOST, add_benchmarks, add_evaluations, benchmark_content, benchmark_header
from populated import add_worker
from sqlalchemy import select

from roundhouse.console.benchmarks.content import BenchmarkContent
from roundhouse.console.benchmarks.recording import record_benchmark
from roundhouse.console.benchmarks.records import MOST_CHOSEN
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import BenchmarkPoint, BenchmarkPrefill, BenchmarkRun, BenchmarkTag, Job, Worker

RUN = "b00000000000"
TABLES: dict[str, type[BenchmarkPoint] | type[BenchmarkPrefill]] = {"point": BenchmarkPoint, "prefill": BenchmarkPrefill}


@pytest.fixture
def measured(database: Database) -> Database:
    with database.writing() as session:
        add_benchmarks(session, 6, files=[("aiperf/log.txt", b"packed")])
    return database


def text_of(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def heads(text: str) -> list[str]:
    """The columns of the list."""
    head = re.search(r"<thead>(.*?)</thead>", text, re.DOTALL)
    assert head is not None
    return [re.sub(r"<[^>]+>", "", each).strip() for each in re.findall(r"<th.*?</th>", head[1], re.DOTALL)]


def test_nothing_measured_yet_says_what_measures(browser: BrowserMaker) -> None:
    assert "Measure something" in text_of(browser("operator"), "/benchmarks")
    seen = text_of(browser("viewer"), "/benchmarks")
    assert "Nothing has been measured yet" in seen
    assert "/benchmarks/new" not in seen


def test_filters_order_and_columns_are_in_the_address(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, "/benchmarks?weights=int4_awq&sort=-most&columns=most,weights")
    assert 'value="b00000000002"' in text
    assert 'value="b00000000000"' not in text
    assert heads(text) == ["Chosen", "Measured", "Weights", "Tokens/s, most"]
    assert "/benchmarks?weights=int4_awq&amp;sort=most&amp;columns=weights%2Cmost" in text
    assert "No run fits these filters" in text_of(viewer, "/benchmarks?text=nothing+like+it")
    assert text_of(viewer, "/benchmarks?sort=luck", 422)


def test_filters_keep_how_the_list_looks_and_the_other_way_round(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, "/benchmarks?weights=int4_awq&job=7&sort=-most&columns=most,weights&size=2")
    form = re.search(r'<form class="filters".*?</form>', text, re.DOTALL)
    assert form is not None
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form[0]))
    assert hidden == {"job": "7", "sort": "-most", "columns": "weights,most", "size": "2"}
    assert 'href="/benchmarks?sort=-most&amp;size=2&amp;columns=weights%2Cmost">Clear<' in form[0]
    shown = text_of(viewer, "/benchmarks?weights=int4_awq&sort=-most&size=2")
    back = re.search(r'name="back" value="([^"]*)"', shown)
    assert back is not None
    assert back[1] == "/benchmarks?weights=int4_awq&amp;sort=-most&amp;size=2"
    assert "/benchmarks?weights=int4_awq&amp;sort=name&amp;size=2" in shown


def test_what_has_no_column_is_said_where_it_matters(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        row = session.get_one(BenchmarkRun, RUN)
        row.failed, row.noisy = 3, 2
        session.add(BenchmarkTag(benchmark_id=RUN, tag="release"))
    viewer = browser("viewer")
    text = text_of(viewer, "/benchmarks")
    for words in ("3 failed", "2 noisy", "?tag=release"):
        assert words in text
    with_columns = text_of(viewer, "/benchmarks?columns=state,failed,noisy")
    assert "3 failed" not in with_columns
    assert "2 noisy" not in with_columns


def test_parquet_is_offered_where_the_server_can_write_it(
    browser: BrowserMaker, measured: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = browser("viewer")
    for hint in (None, "pip install 'roundhouse-llm[parquet]'"):
        for module in ("benchmarks", "benchmark_run"):
            monkeypatch.setattr(f"roundhouse.console.web.pages.{module}.parquet_hint", lambda hint=hint: hint)
        text, run = text_of(viewer, "/benchmarks"), text_of(viewer, f"/benchmarks/{RUN}")
        for each in ("json", "csv"):
            assert f'name="format" value="{each}"' in text
        assert f"/benchmarks/export?run={RUN}&amp;format=csv" in run
        assert ('value="parquet"' in text) == ("format=parquet" in run) == (hint is None)
        assert ("roundhouse-llm[parquet]" in text) == ("roundhouse-llm[parquet]" in run) == (hint is not None)


def test_chosen_columns_are_kept_for_who_chose_them(browser: BrowserMaker, measured: Database) -> None:
    ann, bob = browser("viewer", "ann"), browser("viewer", "bob")
    usual = heads(text_of(bob, "/benchmarks"))
    answer = ann.submit("/benchmarks/columns", {"column": "note", "back": "/benchmarks?state=finished"}, page="/benchmarks")
    assert str(answer.url).endswith("/benchmarks?state=finished")  # type: ignore[attr-defined]
    assert heads(text_of(ann, "/benchmarks")) == ["Chosen", "Measured", "Note"]
    assert heads(text_of(bob, "/benchmarks")) == usual
    ann.submit("/benchmarks/columns", {"column": "note", "usual": "1", "back": "https://elsewhere"}, page="/benchmarks")
    assert heads(text_of(ann, "/benchmarks")) == usual


def test_a_run_tells_numbers_before_pictures_and_how_to_measure_it_again(browser: BrowserMaker, measured: Database) -> None:
    text = text_of(browser("viewer"), f"/benchmarks/{RUN}")
    order = ["Speed by concurrency", "Latency by concurrency", "Prefill by prompt length", "Throughput against concurrency",
             "Trade-off", "What the engine counted", "Reproduce", "Environment", "Raw files"]  # fmt: skip
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "roundhouse bench tiny-bf16-bf16 --concurrency 1,8,16,32 --seed 7" in text
    assert "model: demo:smollm2" in text
    assert f"/api/v1/benchmarks/{RUN}/files/aiperf/log.txt" in text
    assert text.count("<desc ") == 6
    assert 'style="' not in text
    assert "Delete" not in text, "a viewer deletes nothing"


def test_noise_is_marked_and_explained(browser: BrowserMaker, measured: Database) -> None:
    with measured.writing() as session:
        row = next(row for row in session.scalars(select(BenchmarkRun).order_by(BenchmarkRun.id)) if row.noisy)
        noisy = row.id
    text = text_of(browser("viewer"), f"/benchmarks/{noisy}")
    assert "disturbed: other processes kept up to 0.400 cores busy" in text
    assert "curve-hollow" in text


def test_noise_while_prefill_was_measured_counts(browser: BrowserMaker, database: Database) -> None:
    content = benchmark_content(0)
    points = tuple(each.model_copy(update={"other_cores": 0.0}) for each in content.points)
    first, *others = (each.model_copy(update={"other_cores": 0.0}) for each in content.prefill)
    prefill = (first.model_copy(update={"other_cores": 0.6}), *others)
    with database.writing() as session:
        record_benchmark(session, replace(content, points=points, prefill=prefill), "here", "/home")
        run = content.header.id
        assert session.scalars(select(BenchmarkRun.noisy)).one() == 1
    text = text_of(browser("viewer"), f"/benchmarks/{run}")
    assert f"1 of {len(points) + len(prefill)} points was disturbed: other processes kept up to 0.600 cores busy" in text


@pytest.mark.parametrize(
    ("state", "part", "said"),
    [
        ("interrupted", 0.5, "what was measured so far is kept, 6 of 12 points"),
        ("interrupted", 0.0, "nothing was measured"),
        ("cancelled", 0.25, "What was measured so far is kept: 3 of 12 points"),
        ("failed", 0.25, "The endpoint went away."),
    ],
)
def test_a_run_that_did_not_finish_says_what_is_kept(
    browser: BrowserMaker, database: Database, state: Any, part: float, said: str
) -> None:
    with database.writing() as session:
        problem = "the endpoint went away" if state == "failed" else None
        add_benchmarks(session, state=state, part=part, problem=problem)
    assert said in text_of(browser("viewer"), f"/benchmarks/{RUN}")


def test_a_run_that_goes_on_is_followed(browser: BrowserMaker, database: Database) -> None:
    add_worker(database, HOST, HOME)
    with database.writing() as session:
        add_benchmarks(session, state="running", part=0.5, samples=40, began_at=utc_now() - timedelta(seconds=41))
    viewer = browser("viewer")
    text = text_of(viewer, f"/benchmarks/{RUN}")
    assert f'data-live="/benchmarks/{RUN}/live"' in text
    assert f'hx-get="/benchmarks/{RUN}/now?measured=6"' in text
    assert "8 at once, repeat 1" in text_of(viewer, f"/benchmarks/{RUN}/now?measured=6")
    assert "run-results" not in text_of(viewer, f"/benchmarks/{RUN}/now?measured=6")
    more = viewer.get(f"/benchmarks/{RUN}/now?measured=5")
    assert "hx-refresh" not in more.headers, "who types a note meanwhile keeps it"
    assert 'id="run-results" hx-swap-oob="true"' in more.text
    assert text_of(viewer, f"/benchmarks/{RUN}").count('id="run-results"') == 1
    samples = viewer.get(f"/benchmarks/{RUN}/samples").json()
    assert len(samples["at"]) == 40
    assert samples["series"]["running"][-1] == 8


def test_prefill_that_comes_is_shown_as_it_comes(browser: BrowserMaker, database: Database) -> None:
    """It comes after all load: the number of points of load tells nothing of it."""
    add_worker(database, HOST, HOME)
    whole = benchmark_content(0, state="running")
    with database.writing() as session:
        record_benchmark(session, dataclasses.replace(whole, prefill=whole.prefill[:1]), HOST, HOME)
    viewer = browser("viewer")
    assert f'hx-get="/benchmarks/{RUN}/now?measured=13"' in text_of(viewer, f"/benchmarks/{RUN}")
    assert "run-results" not in text_of(viewer, f"/benchmarks/{RUN}/now?measured=13")
    with database.writing() as session:
        record_benchmark(session, dataclasses.replace(whole, prefill=whole.prefill[:2]), HOST, HOME)
    more = text_of(viewer, f"/benchmarks/{RUN}/now?measured=13")
    assert 'id="run-results"' in more
    assert "now?measured=14" in more


def test_who_follows_a_run_has_only_what_is_new_read(browser: BrowserMaker, database: Database) -> None:
    add_worker(database, HOST, HOME)
    with database.writing() as session:
        add_benchmarks(session, state="running", part=0.5, samples=40)
        add_evaluations(session, state="running")
    viewer = browser("viewer")
    viewer.get(f"/benchmarks/{RUN}/now?measured=6")
    for path in (f"/benchmarks/{RUN}/now?measured=6", f"/benchmarks/{RUN}/samples", "/evaluations/e00000000000/now?scores=1"):
        with count_queries(database) as seen:
            assert viewer.get(path).status_code == 200
        assert not any("benchmark_point" in each or ".record" in each for each in seen), path
        assert not any(re.search(r"(?<!\()\b(benchmark|evaluation)\.header\b", each) for each in seen), path
    with count_queries(database) as seen:
        viewer.get(f"/benchmarks/{RUN}/now?measured=5")
    assert any("benchmark_point" in each for each in seen), "a point is new"


def test_samples_come_as_events_until_the_run_has_ended(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_benchmarks(session, samples=5)
    text = text_of(browser("viewer"), f"/benchmarks/{RUN}/live")
    told = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith('data: {"at"')]
    assert len(told) == 1, "who comes late gets the last one, and the chart has those before"
    assert told[0]["values"]["completed"] == 2
    assert "event: end" in text


def test_notes_tags_and_the_pin_are_kept(browser: BrowserMaker, measured: Database) -> None:
    operator = browser("operator")
    page = f"/benchmarks/{RUN}"
    operator.submit(f"{page}/tags", {"tags": "release, h200"}, page=page)
    operator.submit(f"{page}/note", {"note": "before the new driver"}, page=page)
    operator.submit(f"{page}/pin", {"pinned": "true"}, page=page)
    text = text_of(operator, page)
    assert 'value="h200 release"' in text
    assert "before the new driver" in text
    assert "Unpin it" in text
    assert 'value="b00000000000"' in text_of(operator, "/benchmarks?tag=release&baseline=true&text=driver")
    other = text_of(operator, "/benchmarks/b00000000004")
    assert f"/benchmarks/compare?run={RUN}&amp;run=b00000000004" in other, "a later run of its series"
    operator.submit(f"{page}/pin", {}, page=page)
    assert "Pin as the baseline" in text_of(operator, page)


def test_a_tag_that_is_none_is_refused(browser: BrowserMaker, measured: Database) -> None:
    answer = browser("operator").submit(f"/benchmarks/{RUN}/tags", {"tags": "<b>"}, page=f"/benchmarks/{RUN}")
    assert answer.status_code == 422  # type: ignore[attr-defined]


def test_deleting_names_what_goes(browser: BrowserMaker, measured: Database) -> None:
    operator = browser("operator")
    text = text_of(operator, f"/benchmarks/delete?run={RUN}&run=b00000000001")
    assert "These 2 runs go, with every point" in text
    operator.submit("/benchmarks/delete", {"run": RUN}, page=f"/benchmarks/delete?run={RUN}")
    assert operator.get(f"/benchmarks/{RUN}").status_code == 404
    assert "No run was chosen" in text_of(operator, "/benchmarks/delete")


def test_runs_are_taken_away_as_files(browser: BrowserMaker, measured: Database) -> None:
    viewer = browser("viewer")
    rows = list(csv.DictReader(io.StringIO(text_of(viewer, f"/benchmarks/export?run={RUN}&run=b00000000001&format=csv"))))
    assert len(rows) == 2 * (12 + 6)
    answer = viewer.get(f"/benchmarks/export?run={RUN}")
    assert answer.headers["content-disposition"] == f'attachment; filename="benchmark-{RUN}.json"'
    assert answer.json()["runs"][0]["header"]["id"] == RUN
    assert "No run was chosen" in text_of(viewer, "/benchmarks/export")


def test_as_many_are_taken_away_or_deleted_as_are_compared(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        ids = add_benchmarks(session, 3)
    operator = browser("operator")
    for count, status in ((MOST_CHOSEN, 200), (MOST_CHOSEN + 1, 422)):
        query = "&".join(f"run={id_}" for id_ in [*ids, *[ids[0]] * (count - 3)])
        for path in ("export", "delete"):
            assert operator.get(f"/benchmarks/{path}?{query}").status_code == status, path
    others = "&".join(f"run={number:012x}" for number in range(MOST_CHOSEN))
    assert operator.get(f"/benchmarks/compare?{others}").status_code == 200


def test_a_benchmark_is_asked_for(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
    operator = browser("operator")
    assert "about 48 prompts" not in text_of(operator, f"/benchmarks/new?engine={ID}")
    wish = {
        "engine": ID,
        "concurrencies": "1 4",
        "repeats": "2",
        "workload": "chat",
        "guard": "off",
        "prefill_lengths": "64,128",
    }
    answer = operator.submit("/benchmarks/new", wish, page="/benchmarks/new")
    with database.reading() as session:
        job = session.scalars(select(Job)).one()
    assert str(answer.url).endswith(f"/builds/{job.id}")  # type: ignore[attr-defined]
    asked = job.payload["wish"]
    assert (asked["concurrencies"], asked["repeats"], asked["prefill_lengths"]) == ([1, 4], 2, [64, 128])
    assert asked["workload"]["name"] == "chat"
    assert "seed" not in asked, "what measures has a usual one"
    assert asked["overrides"]["guard"] == "off"


def test_a_deployment_and_an_endpoint_can_be_measured(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, "aaaaaaaa", engine_id=ID, openai="http://127.0.0.1:9000/v1")
    operator = browser("operator")
    assert 'value="aaaaaaaa" selected' in text_of(operator, "/benchmarks/new?deployment=aaaaaaaa")
    assert "/benchmarks/new?deployment=aaaaaaaa" in text_of(operator, "/deployments/aaaaaaaa")
    operator.submit("/benchmarks/new", {"subject": "deployment", "deployment": "aaaaaaaa"}, page="/benchmarks/new")
    elsewhere = {"subject": "url", "url": "http://gpu:8000/v1", "model": "m", "api_key": "very-secret", "server": "vLLM"}
    operator.submit("/benchmarks/new", elsewhere, page="/benchmarks/new")
    with database.reading() as session:
        first, second = session.scalars(select(Job).order_by(Job.id))
    assert first.payload["wish"]["url"] == "http://127.0.0.1:9000/v1"
    assert second.payload["wish"]["server"] == "vLLM"
    assert "very-secret" not in json.dumps(second.payload)


def test_what_is_wrong_is_said_at_its_field_and_secrets_are_not_shown(browser: BrowserMaker, database: Database) -> None:
    wish = {
        "subject": "url",
        "url": "http://gpu:8000",
        "concurrencies": "1, many",
        "input_tokens": "0",
        "api_key": "very-secret",
    }
    answer = browser("operator").submit("/benchmarks/new", wish, page="/benchmarks/new")
    text = answer.text  # type: ignore[attr-defined]
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert re.search(r'id="concurrencies-error">.*?write a whole number', text, re.DOTALL)
    assert 'id="input_tokens-error"' in text
    assert 'value="1, many"' in text
    assert "very-secret" not in text


def test_the_form_says_what_would_be_measured_and_how_long(browser: BrowserMaker, database: Database) -> None:
    of_it = benchmark_header().subject.model_copy(update={"engine_id": ID})
    with database.writing() as session:
        add_built(session)
        add_benchmarks(session, subject=of_it)
    operator = browser("operator")
    text = operator.submit("/benchmarks/new/check", {"engine": ID, "concurrencies": "1, 8"}, page="/benchmarks/new").text  # type: ignore[attr-defined]
    assert "6: 2 concurrencies, 3 repeats" in text
    assert "this engine&#39;s latest run" in text or "this engine's latest run" in text
    assert 'value="7"' in text_of(operator, f"/benchmarks/new?again={RUN}"), "the same seed"


def test_an_engine_tells_what_was_measured_of_it(browser: BrowserMaker, database: Database) -> None:
    of_it = benchmark_header().subject.model_copy(update={"engine_id": ID})
    with database.writing() as session:
        add_built(session)
        add_benchmarks(session, 2, subject=of_it)
    text = text_of(browser("viewer"), f"/engines/{ID}?tab=benchmarks")
    assert 'Benchmarks<span class="tab-count">2</span>' in text
    assert "Throughput against concurrency" in text
    assert "/benchmarks/b00000000001" in text


def test_a_run_is_asked_for_again_only_where_it_can_be(browser: BrowserMaker, measured: Database) -> None:
    ann = browser("operator", "ann")
    again = f"/benchmarks/new?again={RUN}"
    assert again in text_of(ann, f"/benchmarks/{RUN}")
    text = text_of(ann, again)
    assert "The engine that was measured" in text, "no host has it"
    with measured.writing() as session:
        add_built(session, "0" * 16, "tiny-bf16-bf16")
        imported = benchmark_header(90, imported_from="result.json")
        record_benchmark(session, BenchmarkContent(imported, "finished"), "", "")
    assert "The engine that was measured" not in text_of(ann, again)
    assert "again=" not in text_of(ann, f"/benchmarks/{imported.id}")
    assert "cannot be asked for here" in text_of(ann, f"/benchmarks/new?again={imported.id}", 409)


@pytest.mark.parametrize("kind", ["benchmark", "evaluate"])
def test_a_job_leads_to_what_it_measures_from_the_first_moment(browser: BrowserMaker, database: Database, kind: str) -> None:
    ann = browser("operator", "ann")
    id_ = add_job(database, "running", kind=kind)
    assert 'id="record"' not in text_of(ann, f"/builds/{id_}")
    add, path = (add_benchmarks, "benchmarks") if kind == "benchmark" else (add_evaluations, "evaluations")
    with database.writing() as session:
        (record,) = add(session, 1, job_id=id_, state="running")  # type: ignore[operator]
    text = text_of(ann, f"/builds/{id_}")
    assert f'id="record" href="/{path}/{record}"' in text
    assert "What was measured so far is kept." in text
    assert "thrown away" not in text
    assert f'href="/{path}/{record}"' in text_of(ann, f"/builds/{id_}/live?attempt=1")


def test_what_lost_its_key_is_asked_for_anew_and_not_tried_again(browser: BrowserMaker, database: Database) -> None:
    ann = browser("operator", "ann")
    wish = {"subject": "url", "url": "http://gpu:8000/v1", "api_key": "very-secret"}
    for path in ("/benchmarks/new", "/evaluations/new"):
        page = str(ann.submit(path, wish, page=path).url)  # type: ignore[attr-defined]
        text = ann.submit(f"{page}/cancel", page=page).text  # type: ignore[attr-defined]
        assert "Try again" not in text
        assert f'{path}?url=http%3A//gpu%3A8000/v1"' in text
        assert 'value="http://gpu:8000/v1"' in text_of(ann, f"{path}?url=http://gpu:8000/v1")
    with database.reading() as session:
        assert session.scalars(select(Job.sealed)).all() == ["", ""]


def test_the_form_says_where_aiperf_is_missing(browser: BrowserMaker, database: Database) -> None:
    ann = browser("operator", "ann")
    assert "aiperf was not there" not in text_of(ann, "/benchmarks/new")
    worker = add_worker(database, "bare", HOME)
    assert "aiperf was not there when the worker on bare started" in text_of(ann, "/benchmarks/new")
    with database.writing() as session:
        session.get_one(Worker, worker.id).versions = {"aiperf": "0.13.0"}
    assert "aiperf was not there" not in text_of(ann, "/benchmarks/new")


@pytest.mark.parametrize("part", ["header", "point", "prefill"])
def test_a_run_that_this_version_cannot_read_says_so_and_hides_nothing_else(
    browser: BrowserMaker, measured: Database, part: str
) -> None:
    with measured.writing() as session:
        row = session.get_one(BenchmarkRun, RUN)
        add_built(session, row.engine_id or "", "tiny")
        if part == "header":
            row.header = row.header | {"subject": row.header["subject"] | {"manifest": {"recipe": "int4"}}}
        else:
            point = session.scalars(select(TABLES[part]).where(TABLES[part].benchmark_id == RUN)).first()
            assert point is not None
            point.record = {"of": "another version"}
        engine = row.engine_id
    operator = browser("operator")
    shown = [f"/benchmarks/{RUN}", f"/benchmarks/export?run={RUN}&form=csv", f"/api/v1/benchmarks/{RUN}"]
    for path in (*shown, f"/api/v1/benchmarks/{RUN}/record", f"/benchmarks/new?again={RUN}"):
        text = text_of(operator, path, 409)
        assert f"{RUN} cannot be shown" in text
        assert "Another version of Roundhouse" in text
    text_of(operator, "/benchmarks")
    text_of(operator, "/benchmarks/b00000000001")
    assert RUN in text_of(operator, f"/engines/{engine}?tab=benchmarks")
    operator.submit("/benchmarks/delete", {"run": RUN}, page=f"/benchmarks/delete?run={RUN}")
    assert RUN not in text_of(operator, "/benchmarks")
