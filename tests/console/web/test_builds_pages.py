"""Builds as people see them: a new one, the list, and one with its log."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, BrowserMaker
from building import add_engine, add_job, add_worker, make_model
from built import add_built
from counting import count_queries
from sqlalchemy import func, select

from roundhouse.console.database.database import Database
from roundhouse.console.jobs.queries import log_lines
from roundhouse.console.models import Job, LogLine
from roundhouse.console.web.pages import job_log


@pytest.fixture
def ann(browser: BrowserMaker) -> Browser:
    return browser("operator", "ann")


@pytest.fixture
def model(tmp_path: Path) -> str:
    return make_model(tmp_path / "home" / "models" / "tiny")


def said(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def submit(client: Browser, path: str, follow: bool = False, **data: str) -> Any:
    form = {"form_token": client.form_token("/"), **data}
    return client.post(path, data=form, headers={"origin": "http://127.0.0.1"}, follow_redirects=follow)


def jobs(database: Database) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(Job)) or 0


def events(text: str) -> list[tuple[str | None, str | None, Any]]:
    """(event, id, data) of each event of a stream."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
        if "data" in lines:
            found.append((lines.get("event"), lines.get("id"), json.loads(lines["data"])))
    return found


def test_from_a_plan_to_a_build_that_is_in_line(ann: Browser, database: Database, model: str) -> None:
    add_worker(database)
    page = ann.get("/builds/new", params={"model": model, "weights": "fp8", "device": "cpu"})
    assert f"model: {model}\nweights: fp8\n</textarea>" in html.unescape(page.text)
    assert "forge" in said(page.text)
    key = re.search(r'name="idempotency_key" value="([^"]+)"', page.text)
    assert key is not None
    recipe = f"model: {model}\nweights: fp8\n"
    answers = [submit(ann, "/builds", recipe=recipe, idempotency_key=key[1]) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["location"] == answers[1].headers["location"] == "/builds/1"
    assert jobs(database) == 1
    text = said(ann.get("/builds/1").text)
    assert "queued" in text
    assert "No worker" not in text


def test_what_cannot_be_built_is_shown_again_with_the_reason(ann: Browser, database: Database, model: str) -> None:
    for recipe, reason in (
        ("model: {}\nweights: nvfp4\n", "the torch target has no NVFP4 kernel"),
        ("model: {}\nweigths: fp8\n", "did you mean 'weights'?"),
        ("model: [", "This is no YAML"),
        ("model: /etc\n", "not in a folder that may be read"),
        ("model: shape:qwen3-8b\n", "A shape has no weights"),
        ("", "A recipe is a mapping"),
    ):
        typed = recipe.format(model)
        answer = submit(ann, "/builds", recipe=typed, idempotency_key="k" * 20)
        assert answer.status_code == 422
        assert reason in said(answer.text)
        assert f"{typed}</textarea>" in html.unescape(answer.text)
        assert 'value="kkkkkkkkkkkkkkkkkkkk"' in answer.text
    assert jobs(database) == 0


def test_the_plan_follows_the_text_with_and_without_scripts(ann: Browser, model: str) -> None:
    part = ann.post(
        "/builds/new/plan",
        data={"form_token": ann.form_token("/"), "recipe": f"model: {model}\nmax_seq_len: 100000"},
        headers={"origin": "http://127.0.0.1", "hx-request": "true"},
    )
    assert (part.status_code, "<html" in part.text) == (200, False)
    assert "above the model" in said(part.text)
    assert re.search(r"<button[^>]* disabled>", part.text)
    way = re.search(r'href="(/builds/new\?[^"]+)"', part.text)
    assert way is not None
    assert "max_seq_len: 8192" in ann.get(html.unescape(way[1])).text
    whole = submit(ann, "/builds/new/plan", recipe="model: x")
    assert (whole.status_code, "<html" in whole.text) == (200, True)


def test_viewers_see_builds_and_change_none(browser: BrowserMaker, database: Database) -> None:
    vic, job_id = browser("viewer", "vic"), add_job(database, "running")
    assert vic.get("/builds/new").status_code == 403
    assert "Cancel" not in vic.get(f"/builds/{job_id}").text
    assert "/builds/new" not in vic.get("/builds").text
    for path in ("/builds", f"/builds/{job_id}/cancel", f"/builds/{job_id}/retry"):
        assert submit(vic, path, recipe="model: x").status_code == 403


def test_the_list_filters_by_address_and_moves_while_something_runs(ann: Browser, database: Database) -> None:
    assert "Build the demo model" in said(ann.get("/builds").text)
    add_job(database, "succeeded", subject="alpha")
    add_job(database, "failed", subject="beta", requested_by="ada", error="it broke")
    add_job(database, "succeeded", kind="verify", subject="gamma")
    seen = said(ann.get("/builds").text)
    assert ("alpha" in seen, "beta" in seen, "gamma" in seen, "it broke" in seen) == (True, True, False, True)
    for query, names in (
        ("state=failed", {"beta"}),
        ("text=ALPH", {"alpha"}),
        ("who=ada", {"beta"}),
        ("kind=verify", {"gamma"}),
        ("kind=all", {"alpha", "beta", "gamma"}),
        ("kind=all&state=succeeded&text=a&who=ann", {"alpha", "gamma"}),
        ("text=nothing", set()),
    ):
        page = ann.get(f"/builds?{query}").text
        assert {name for name in ("alpha", "beta", "gamma") if re.search(rf">[^<]*{name}</a>", page)} == names, query
        assert "every 3s" not in page
    assert "Nothing fits these filters" in ann.get("/builds?text=nothing").text
    add_job(database, "running", stages=("plan", "load"))
    page = ann.get("/builds?state=running").text
    assert 'hx-get="/builds/table?state=running' in page
    part = ann.get("/builds/table?state=running")
    assert ("load, 50.0%" in said(part.text), "<html" in part.text) == (True, False)


def test_the_list_has_pages_and_takes_as_many_statements_with_more_jobs(ann: Browser, database: Database) -> None:
    def statements() -> int:
        with count_queries(database) as seen:
            ann.get("/builds?size=20")
        return len(seen)

    add_job(database, "running", stages=("plan",))
    few = statements()
    for number in range(30):
        add_job(database, "succeeded", subject=f"engine-{number}", stages=("plan", "load"))
    assert statements() == few <= 10
    page = ann.get("/builds?size=20&state=succeeded").text
    assert "1–20 of 30" in page
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    assert "21–30 of 30" in ann.get(html.unescape(following[1])).text


def test_a_running_build_tells_how_far_it_is(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "running", lines=3, stages=("plan", "load"), worker_id=add_worker(database))
    page = ann.get(f"/builds/{job_id}").text
    for part in (
        "Build tiny-int4_awq-kv-fp8",
        "Running for",
        "on forge",
        "attempt 1 of 2",
        "the work of load",
        "50.0%",
        "line 3",
    ):
        assert part in said(page)
    assert f'data-stream="/builds/{job_id}/log/stream?attempt=1"' in page
    assert f'hx-get="/builds/{job_id}/live?attempt=1"' in page
    assert 'id="job-actions" class="actions" hx-swap-oob' not in (live := ann.get(f"/builds/{job_id}/live?attempt=1")).text
    assert 'id="page-chip" hx-swap-oob="true"' in live.text


def test_a_queued_build_says_why_it_waits(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "queued", target="torch")
    assert "No worker is alive" in said(ann.get(f"/builds/{job_id}").text)
    add_worker(database)
    assert "No worker" not in said(ann.get(f"/builds/{job_id}").text)


def test_a_build_that_ended_says_what_came_of_it(ann: Browser, database: Database) -> None:
    engine = add_engine(database)
    made = add_job(database, "succeeded", engine_id=engine, result={"engine_id": engine, "new": True}, stages=("plan",))
    page = ann.get(f"/builds/{made}").text
    for part in ("111.2 MiB", "from 256.6 MiB", "87.4%", "KL 0.071", "65,536"):
        assert part in said(page)
    assert f'href="/engines/{engine}"' in page
    assert "every 2s" not in page
    failed = add_job(database, "failed", error="two tensors differ", hint="Report it.", lines=2)
    text = said(ann.get(f"/builds/{failed}").text)
    assert text.index("Two tensors differ. Report it.") < text.index("line 1")
    assert "Try again" in text


def test_other_jobs_have_the_same_page(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "succeeded", kind="verify", subject="tiny", payload={"engine_id": "x"}, result={"files": 12})
    text = said(ann.get(f"/builds/{job_id}").text)
    assert "Verify tiny" in text
    assert '"files": 12' in text
    assert "Clone" not in text
    strange = add_job(database, "failed", payload={"recipe": {"model": "m", "of_the_future": 1}})
    assert ann.get(f"/builds/{strange}").status_code == 200


def test_cancel_try_again_and_clone(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "queued")
    for _ in range(2):
        assert "cancelled" in said(submit(ann, f"/builds/{job_id}/cancel", follow=True).text)
    assert submit(ann, f"/builds/{add_job(database, 'succeeded')}/cancel").status_code == 409
    for _ in range(2):
        again = said(submit(ann, f"/builds/{job_id}/retry", follow=True).text)
        assert ("queued" in again, "It is in line." in again) == (True, True)
    assert "model: shape:smollm2-135m" in ann.get(f"/builds/new?job={job_id}").text
    running = add_job(database, "running")
    assert "It is running already." in said(submit(ann, f"/builds/{running}/retry", follow=True).text)
    assert "It is being ended" in said(submit(ann, f"/builds/{running}/cancel", follow=True).text)
    for missing in ("/builds/999", "/builds/999/live", "/builds/999/log.txt", "/builds/999/log/stream", "/builds/new?job=999"):
        assert ann.get(missing).status_code == 404


def test_the_log_resumes_where_the_browser_was(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "failed", lines=5)
    path = f"/builds/{job_id}/log/stream?attempt=1"
    whole = events(ann.get(path).text)
    assert [(name, identity) for name, identity, _ in whole] == [(None, "5"), ("end", None)]
    assert [line["number"] for line in whole[0][2]] == [1, 2, 3, 4, 5]
    assert [line["number"] for line in events(ann.get(f"{path}&after=3").text)[0][2]] == [4, 5]
    again = ann.get(f"{path}&after=1", headers={"last-event-id": "4"})
    assert events(again.text)[0][2] == [{"number": 5, "text": "line 5"}]
    assert [name for name, _, _ in events(ann.get(f"{path}&after=5").text)] == ["end"]


def test_each_attempt_has_its_log(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "running", lines=1, attempt=2)
    with database.writing() as session:
        at = session.scalar(select(LogLine.at))
        session.add(LogLine(job_id=job_id, attempt=1, number=1, at=at, text="of the first attempt"))
    assert "of the first attempt" not in ann.get(f"/builds/{job_id}").text
    first = ann.get(f"/builds/{job_id}?attempt=1").text
    assert "of the first attempt" in first
    assert 'data-stream=""' in first
    assert [name for name, _, _ in events(ann.get(f"/builds/{job_id}/log/stream?attempt=1").text)] == [None, "end"]
    assert ann.get(f"/builds/{job_id}/log.txt?attempt=1").text == "of the first attempt\n"
    download = ann.get(f"/builds/{job_id}/log.txt")
    assert download.text == "line 1\n"
    assert download.headers["content-disposition"] == f'attachment; filename="job-{job_id}-attempt-2.log"'
    assert ann.get(f"/builds/{job_id}/live?attempt=1").headers.get("hx-refresh") == "true"
    assert "hx-refresh" not in ann.get(f"/builds/{job_id}/live?attempt=1&chosen=true").headers


def test_a_long_log_is_shown_from_its_end(ann: Browser, database: Database) -> None:
    job_id = add_job(database, "failed", lines=1_203)
    page = ann.get(f"/builds/{job_id}").text
    assert "The last 500 of 1,203 lines" in page
    assert ("line 703<" in page, "line 704<" in page) == (False, True)
    assert ann.get(f"/builds/{job_id}/log.txt").text.count("\n") == 1_203
    told = events(ann.get(f"/builds/{job_id}/log/stream?attempt=1").text)
    assert [len(data) for _, _, data in told] == [1_000, 203, 0]


def test_a_stream_holds_no_connection_of_its_request(ann: Browser, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, held = add_job(database, "failed", lines=1), list[str]()

    def lines(*args: Any, **keys: Any) -> Any:
        held.append(database.engine.pool.status())
        return log_lines(*args, **keys)

    monkeypatch.setattr(job_log, "log_lines", lines)
    ann.get(f"/builds/{job_id}/log/stream?attempt=1")
    assert [re.findall(r"Current Checked out connections: (\d+)", status) for status in held] == [["1"]]  # the look's own


@pytest.mark.parametrize(
    "address", ["/builds?state=runing", "/builds?kind=bild", "/deployments?state=redy", "/engines?state=her"]
)
def test_a_filter_that_is_none_is_named_and_hides_nothing(ann: Browser, address: str) -> None:
    answer = ann.get(address)
    field = address.partition("?")[2].split("=")[0]
    assert answer.status_code == 422
    assert f"{field}: input should be" in said(answer.text).lower()


@pytest.mark.parametrize("address", ["/builds", "/deployments", "/engines", "/integrity", "/workers"])
def test_fields_of_a_filter_that_nobody_filled_in_do_not_matter(ann: Browser, address: str) -> None:
    fields = re.findall(r'<(?:input|select)[^>]* name="(\w+)"', ann.get(address).text)
    assert ann.get(address, params=dict.fromkeys([*fields, "state", "kind", "page"], "")).status_code == 200


def test_a_build_shows_the_plan_of_what_it_made_and_says_where_it_is_planned_anew(ann: Browser, database: Database) -> None:
    add_worker(database)
    before = said(ann.get(f"/builds/{add_job(database, 'running')}").text)
    assert "as it would be planned now, on forge" in before
    with database.writing() as session:
        made = add_built(session)
    after = said(ann.get(f"/builds/{add_job(database, 'succeeded', engine_id=made.id)}").text)
    assert f"as built, for {made.plan.hardware.name}" in after
    assert f"Tokens in the cache {made.plan.kv_tokens:,}" in after
    assert "planned now" not in after


def test_a_build_whose_engine_cannot_be_read_shows_no_plan(ann: Browser, database: Database) -> None:
    text = said(ann.get(f"/builds/{add_job(database, 'succeeded', engine_id=add_engine(database))}").text)
    assert "Requests that fit" not in text
    assert "Recipe" in text
