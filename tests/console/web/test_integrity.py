"""The integrity pages and drills, as browsers and programs meet them."""

from __future__ import annotations

import re
from typing import Any

from browsing import ORIGIN, Browser, BrowserMaker
from built import ID, add_built
from counting import count_queries
from deployed import add_deployment, add_samples
from sqlalchemy import select

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import IntegrityRecord, Job


def text_of(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def add_event(database: Database, name: str = "mine/4/0", **changes: Any) -> int:
    fields: dict[str, Any] = {
        "at": utc_now(), "host": "one", "home": "h", "engine_id": ID, "event": name, "kind": "tag", "request_id": "mine",
        "answer": 0, "step": 4, "column": 1, "page": 1, "expected_tag": 2, "found_tag": 7,
        "last_holders": [{"request_id": "other", "tag": 7, "step": 4, "how": "granted"},
                         {"request_id": "mine", "tag": 2, "step": 1, "how": "granted"}],
    }  # fmt: skip
    with database.writing() as session:
        event = IntegrityRecord(**(fields | changes))
        session.add(event)
        session.flush()
        return event.id


def test_nothing_was_ever_stopped(browser: BrowserMaker) -> None:
    text = text_of(browser("viewer"), "/integrity")
    assert "Nothing is served now" in text
    assert "No row has ever been stopped" in text
    assert "/integrity/drills/new" not in text  # a viewer cannot


def test_one_sentence_and_counters_for_what_is_served(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session, guard="tags")
        add_deployment(session, "aaaaaaaa", engine_id=ID, name="fine")
        add_samples(session, "aaaaaaaa", tag_mismatches=0)
        overrides = {"engine_id": ID, "name": "both", "overrides": {"guard": "tags+content"}}
        add_deployment(session, "bbbbbbbb", engine_id=ID, name="both", settings=overrides)
        add_samples(session, "bbbbbbbb", tag_mismatches=0, content_checks=1234)
        add_deployment(session, "cccccccc", engine_id=ID, name="quiet")
    viewer = browser("viewer")
    text = text_of(viewer, "/integrity")
    assert "All is well" in text
    assert "Not heard of just now: quiet" in text
    assert re.findall(r'<td class="nowrap">(tags\S*)</td>', text) == ["tags+content", "tags"]
    assert "1,234" in text
    with database.writing() as session:
        add_samples(session, "aaaaaaaa", count=1, tag_mismatches=3, guard_alive=False)
    text = text_of(viewer, "/integrity/live")
    assert "fine: 3 rows were stopped" in text
    assert "steps ran unchecked" in text


def test_an_event_can_be_read_without_knowing_the_code(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_deployment(session, name="chat", engine_id=ID)
    event = add_event(database, deployment_id="aaaaaaaa")
    viewer = browser("viewer")
    text = text_of(viewer, "/integrity")
    assert f'<a href="/integrity/events/{event}">Request mine was stopped before step 4' in text
    text = text_of(viewer, f"/integrity/events/{event}")
    for told in (
        "page 1, the request&#39;s page 2, carrying tag 2",
        "tag 7",
        "other was granted it in step 4",
        "is quarantined",
        "chat",
    ):
        assert told in text
    assert text_of(viewer, "/integrity/events/99", 404)


def test_events_are_filtered_and_keep_their_filters(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
    for number in range(3):
        add_event(database, f"mine/{number}/0")
    add_event(database, "theirs/1/0", kind="content")
    text = text_of(browser("viewer"), f"/integrity?kind=tag&engine={ID}&size=2")
    assert "3 fit the filters" in text
    assert "theirs/1/0" not in text
    assert f"/integrity?engine={ID}&amp;kind=tag&amp;page=2&amp;size=2" in text
    assert "No event fits" in text_of(browser("operator"), "/integrity?deployment=nothing")


def test_a_drill_is_asked_for_once_and_shown(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    page = "/integrity/drills/new"
    key = re.search(r'name="idempotency_key" value="([^"]+)"', text_of(operator, page))
    assert key is not None
    form: Any = {"idempotency_key": key[1], "seed": "7", "steps": "", "fault": ["late_write", "none"], "guard": ["tags"]}
    for _ in range(2):
        answer: Any = operator.submit("/integrity/drills", form, page=page)
        assert (answer.status_code, answer.url.path) == (200, "/integrity/drills/1")
    assert "No worker is alive" in answer.text
    with database.reading() as session:
        (job,) = session.scalars(select(Job))
        assert job.payload == {
            "engine_id": None,
            "seed": 7,
            "steps": None,
            "faults": ["late_write", "none"],
            "guards": ["tags"],
        }


def test_a_wrong_drill_shows_the_form_again_with_what_was_typed(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    for field, value in (("seed", "-5"), ("steps", "many"), ("steps", "600000"), ("engine", "nothing")):
        answer: Any = operator.submit("/integrity/drills", {"fault": "stale_tail", field: value}, page="/integrity/drills/new")
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text
        assert f'id="{field}-error"' in answer.text
        assert re.search(r'value="stale_tail" checked', answer.text)
    with database.reading() as session:
        assert session.scalars(select(Job)).all() == []


def test_a_report_is_shown_with_its_verdict_and_played_again(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    operator.submit("/integrity/drills", {"fault": "freed_early"}, page="/integrity/drills/new")
    failure = {
        "fault": "freed_early",
        "guard": "tags",
        "guard_sample": None,
        "seed": 9,
        "steps": 1,
        "why": "1 of 4 not stopped",
    }
    kind = dict.fromkeys(("injected", "effective", "detected", "wrong_rows_run", "leaked_tokens", "false_alarms", "delay_steps",
                          "unexplained", "errors", "steps", "grants"), 4)  # fmt: skip
    kind |= {"fault": "freed_early", "guard": "tags", "guard_sample": None, "probability": 1.0, "passed": False, "judged": True}
    numbers = dict.fromkeys(("steps", "grants", "faults", "preemptions", "cached_tokens"), 5)
    with database.writing() as session:
        job = session.get_one(Job, 1)
        job.state, job.error = "failed", "the drill failed: see its report"
        job.result = {
            "format": "roundhouse.drill/1",
            "seed": 77,
            "engine": None,
            "passed": False,
            "kinds": [kind],
            "failures": [failure],
            **numbers,
        }
    text = text_of(operator, "/integrity/drills/1")
    assert "roundhouse drill --seed 9 --steps 1 --fault freed_early --guard tags" in text
    assert "the allocator frees a page that is still held" in text
    (again,) = re.findall(r'href="(/integrity/drills/new\?[^"]+)"', text)
    form = text_of(operator, again.replace("&amp;", "&"))
    assert 'name="seed" type="number" value="77"' in form
    assert re.search(r'value="freed_early" checked', form)
    assert operator.get("/integrity/drills/1/live").headers["hx-refresh"] == "true"
    assert "77" in text_of(operator, "/integrity/drills")
    assert operator.get("/api/v1/drills/1").json()["report"]["failures"] == [failure]


def test_viewers_start_no_drill(browser: BrowserMaker) -> None:
    viewer = browser("viewer")
    assert text_of(viewer, "/integrity/drills/new", 403)
    answer: Any = viewer.submit("/integrity/drills", page="/")
    assert answer.status_code == 403


def test_programs_do_the_same(browser: BrowserMaker, database: Database) -> None:
    event = add_event(database)
    operator = browser("operator")
    assert operator.get("/api/v1/integrity").json() == {
        "verdict": {"well": True, "sentence": "Nothing is served now, so nothing is being checked."}, "deployments": [],
    }  # fmt: skip
    assert [each["id"] for each in operator.get("/api/v1/integrity/events").json()["items"]] == [event]
    assert operator.get(f"/api/v1/integrity/events/{event}").json()["expected_tag"] == 2
    headers = {"origin": ORIGIN, "x-form-token": operator.form_token(), "idempotency-key": "k"}
    answers = [operator.post("/api/v1/drills", json={"faults": ["none"]}, headers=headers) for _ in range(2)]
    assert [(each.status_code, each.headers["location"]) for each in answers] == [(202, "/api/v1/drills/1")] * 2
    assert operator.post("/api/v1/drills", json={"faults": ["nothing"]}, headers=headers).status_code == 422
    assert operator.get("/api/v1/drills").json()["total"] == 1


def test_more_rows_take_no_more_statements(browser: BrowserMaker, database: Database) -> None:
    viewer = browser("viewer")
    operator = browser("operator")
    operator.submit("/integrity/drills", page="/integrity/drills/new")
    paths = ("/integrity", "/integrity/live", "/integrity/drills")

    def statements() -> list[int]:
        counts = []
        for path in paths:
            with count_queries(database) as seen:
                text_of(viewer, path)
            counts.append(len(seen))
        return counts

    statements()
    few = statements()
    for number in range(8):
        add_event(database, f"mine/{number}/0")
        with database.writing() as session:
            add_deployment(session, f"{number:08x}", engine_id=ID)
            add_samples(session, f"{number:08x}")
        operator.submit("/integrity/drills", page="/integrity/drills/new")
    assert statements() == few
    assert max(few) <= 16
