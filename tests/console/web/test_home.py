"""The home page: a newcomer's way, and what an operator sees first."""

from __future__ import annotations

from browsing import Browser, BrowserMaker
from built import ID, add_built
from deployed import add_deployment, add_samples

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import Job


def main_of(browser: Browser, path: str = "/") -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text.partition("<main")[2] or answer.text


def test_a_newcomer_is_led_from_step_to_step(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    text = main_of(operator)
    assert text.count("step-done") == 0
    assert 'href="/builds/new">Build it' in text
    assert f"/deployments/new?engine={ID}" not in text
    with database.writing() as session:
        add_built(session)
    text = main_of(operator)
    assert text.count("step-done") == 2
    assert f'href="/deployments/new?engine={ID}">Deploy it' in text
    with database.writing() as session:
        add_deployment(session, engine_id=ID, name="chat")
    text = main_of(operator)
    assert 'class="steps"' not in text
    assert '<a id="serving-aaaaaaaa" href="/deployments/aaaaaaaa">chat</a>' in text


def test_where_nothing_is_served_any_more_the_newest_engine_is_offered(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, engine_id=ID, state="stopped", ended_at=utc_now())
    text = main_of(browser("operator"))
    assert f'href="/engines/{ID}">tiny</a> is built.' in text
    assert f'href="/deployments/new?engine={ID}">Deploy it</a>' in text
    assert "/deployments/new" not in main_of(browser("viewer"))


def test_a_viewer_is_offered_nothing_that_is_refused(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
    text = main_of(browser("viewer"))
    assert "/builds/new" not in text
    assert "/deployments/new" not in text


def test_three_columns_and_what_follows_them(browser: BrowserMaker, database: Database) -> None:
    job = {"kind": "build", "subject": "qwen", "payload": {}, "requested_by": "ann", "created_at": utc_now()}
    with database.writing() as session:
        add_deployment(session, engine_id=ID, name="chat")
        add_samples(session)
        session.add(Job(state="queued", **job))
        session.add(Job(state="failed", ended_at=utc_now(), error="it broke", **{**job, "subject": "llama"}))
    viewer = browser("viewer")
    for path in ("/", "/home/live"):
        text = main_of(viewer, path)
        for told in ("40.0", "24.2% of pages", "1 mismatch</a>", "Building llama failed", "it broke", 'href="/builds/2"'):
            assert told in text
        assert 'hx-get="/home/live"' in text
    assert viewer.get("/api/v1/overview").json()["serving"][0]["tokens_per_s"] == 40.0


def test_nothing_needs_anybody(browser: BrowserMaker) -> None:
    assert "Nothing needs you" in main_of(browser("viewer"))
