"""The pages of deployments: what is seen, what is followed, and what people do."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from browsing import ORIGIN, Browser, BrowserMaker
from counting import count_queries
from deployed import HOST, add_deployment, add_engine, add_lines, add_replica, add_samples
from sqlalchemy import select, update

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.jobs import NewJob, enqueue
from roundhouse.console.models import AuditEntry, Deployment, Job, Worker

FRONT = "http://127.0.0.1:9000/v1"


def add_one(database: Database, identity: str = "aaaaaaaa", *, samples: bool = True, **changes: Any) -> None:
    with database.writing() as session:
        add_deployment(session, identity, **({"openai": FRONT} | changes))
        if samples:
            add_samples(session, identity)


def events(text: str) -> list[dict[str, str]]:
    """The fields of each server-sent event."""
    found = [dict(line.split(": ", 1) for line in event.split("\n")) for event in text.split("\n\n") if event]
    return [each for each in found if "data" in each]


def test_the_list_shows_what_each_does_now_and_keeps_ended_ones_behind_a_filter(
    browser: BrowserMaker, database: Database
) -> None:
    add_one(database)
    add_one(database, "bbbbbbbb", name="gone", state="dead", reason="its processes are gone", ended_at=utc_now())
    viewer = browser("viewer")
    text = viewer.get("/deployments").text
    assert 'href="/deployments/aaaaaaaa"' in text
    assert "40.0" in text  # tokens a second
    assert "bbbbbbbb" not in text
    assert "1 deployment has failed or died" in text
    ended = viewer.get("/deployments?state=ended").text
    assert "its processes are gone" in ended
    assert "aaaaaaaa" not in ended
    assert "No deployment fits" in viewer.get("/deployments?text=nothing-like-it").text


def test_an_empty_list_says_what_to_do_to_who_may_do_it(browser: BrowserMaker) -> None:
    assert 'href="/deployments/new"' in browser("operator").get("/deployments").text
    text = browser("viewer").get("/deployments").text
    assert "/deployments/new" not in text
    assert "needs the role operator" in text


def test_a_page_shows_state_numbers_pages_programs_and_log_without_scripts(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    with database.writing() as session:
        add_lines(session, "aaaaaaaa", "I0101 fine", "<script>E0101 bad</script>")
    text = browser("viewer").get("/deployments/aaaaaaaa").text
    for shown in ("ready", "40.0", "90", "curl http://127.0.0.1:9000/v1/chat/completions", "I0101 fine", "no page check has"):
        assert shown in text
    assert "&lt;script&gt;E0101" in text
    assert "Unload" not in text  # a viewer
    assert "from openai import OpenAI" in browser("operator").get("/deployments/aaaaaaaa?snippet=openai").text


@pytest.mark.parametrize(
    ("recipe", "overrides", "says"),
    [
        ({"guard": "tags"}, {}, "tags"),
        ({"guard": "tags"}, {"guard": "off"}, "off"),
        ({"guard": "tags+content", "guard_sample": 0.25}, {}, "tags+content, 25.0% of full pages"),
        ({"guard": "tags+content", "guard_sample": 0.25}, {"guard_sample": 0.5}, "tags+content, 50.0% of full pages"),
        ({"guard": "tags"}, {"guard": "tags+content"}, "tags+content, 2.0% of full pages"),
    ],
)
def test_what_it_runs_with_names_its_guard_and_writes_numbers_out(
    browser: BrowserMaker, database: Database, recipe: dict[str, Any], overrides: dict[str, Any], says: str
) -> None:
    settings = {"engine_id": "0123456789abcdef", "name": "tiny", "overrides": {"kv_cache_tokens": 4096, **overrides}}
    with database.writing() as session:
        add_engine(session, manifest={"recipe": recipe})
        add_deployment(session, settings=settings, openai=FRONT)
        add_samples(session, running=1)
    text = browser("viewer").get("/deployments/aaaaaaaa").text
    assert f"<dt>Page guard</dt><dd>{says}</dd>" in text
    assert "<dt>KV tokens</dt><dd>4,096</dd>" in text
    assert 'data-one="request" data-many="requests"> request<' in text


@pytest.mark.parametrize("state", ["failed", "dead", "stopped", "starting", "unready", "restarting", "stopping"])
def test_every_state_is_shown_with_its_reason(browser: BrowserMaker, database: Database, state: str) -> None:
    ended = utc_now() if state in ("failed", "dead", "stopped") else None
    endpoints = None if state in ("starting", "failed") else FRONT
    add_one(database, state=state, reason="said why", ended_at=ended, openai=endpoints, samples=False)
    operator = browser("operator")
    answer = operator.get("/deployments/aaaaaaaa")
    assert answer.status_code == 200
    assert ("said why" in answer.text) == (state not in ("starting", "stopping"))
    assert ("/redeploy" in answer.text) == (ended is not None)
    assert ("/unload" in answer.text) == (ended is None)
    assert "/give-up" not in answer.text
    with database.writing() as session:
        enqueue(session, NewJob("undeploy", "tiny", deployment_id="aaaaaaaa"))
    assert "/unload" not in operator.get("/deployments/aaaaaaaa").text


def test_one_whose_host_is_gone_is_shown_silent_and_can_be_given_up(browser: BrowserMaker, database: Database) -> None:
    gone = utc_now() - timedelta(days=3)
    add_one(database, samples=False, seen_at=gone)
    operator = browser("operator")
    assert "Its host tells nothing of it" in operator.get("/deployments/aaaaaaaa").text
    assert operator.submit("/deployments/aaaaaaaa/give-up").status_code == 409
    with database.writing() as session:
        session.execute(update(Worker).values(seen_at=gone))
    assert "/give-up" in operator.get("/deployments/aaaaaaaa").text
    assert "/give-up" not in browser("viewer").get("/deployments/aaaaaaaa").text
    assert operator.get("/deployments/aaaaaaaa/now?shape=live-known").headers["hx-refresh"] == "true"
    assert "silent" in operator.get("/deployments").text
    operator.submit("/deployments/aaaaaaaa/give-up")
    text = operator.get("/deployments/aaaaaaaa").text
    assert "no worker of" in text
    assert "/forget" in text


def test_one_that_ends_says_so_once_and_offers_no_conversation(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    operator = browser("operator")
    assert "/playground?with=aaaaaaaa" in operator.get("/deployments/aaaaaaaa").text
    text = str(operator.submit("/deployments/aaaaaaaa/unload", {"idempotency_key": "once"}).text)  # type: ignore[attr-defined]
    assert text.count("It is being unloaded") == 1
    assert "/playground?with=aaaaaaaa" not in text
    assert operator.get("/deployments/aaaaaaaa/now?shape=live-known").headers["hx-refresh"] == "true"


def test_what_follows_the_page_is_loaded_anew_only_when_its_shape_changes(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    viewer = browser("viewer")
    answer = viewer.get("/deployments/aaaaaaaa/now?shape=live-known")
    assert "hx-refresh" not in answer.headers
    assert 'id="page-chip"' in answer.text
    assert viewer.get("/deployments/aaaaaaaa/now?shape=live-unknown").headers["hx-refresh"] == "true"


def test_samples_and_the_stream_tell_the_same_and_resume(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    viewer = browser("viewer")
    history = viewer.get("/deployments/aaaaaaaa/samples").json()
    assert len(history["at"]) == 6
    assert history["series"]["tokens_per_s"][-1] == pytest.approx(40)
    assert history["series"]["ttft_s"][-1] == pytest.approx(0.25)
    with database.writing() as session:
        session.get_one(Deployment, "aaaaaaaa").state = "stopped"  # so that the stream ends
    first = events(viewer.get("/deployments/aaaaaaaa/live").text)
    assert [each.get("event") for each in first] == [None, "end"]
    point = json.loads(first[0]["data"])
    assert point["values"]["tokens_per_s"] == pytest.approx(40)
    assert events(viewer.get("/deployments/aaaaaaaa/live", headers={"last-event-id": first[0]["id"]}).text)[0]["event"] == "end"
    assert events(viewer.get("/deployments/aaaaaaaa/live?after=9999999999999999").text)[0]["event"] == "end"
    earlier = str(int(first[0]["id"]) - 4_000_001)
    assert len(events(viewer.get("/deployments/aaaaaaaa/live", headers={"last-event-id": earlier}).text)) == 4


def test_the_log_is_followed_from_where_the_page_ended_and_downloaded(browser: BrowserMaker, database: Database) -> None:
    add_one(database, state="dead", ended_at=utc_now())
    with database.writing() as session:
        add_lines(session, "aaaaaaaa", "one", "two", "three")
    viewer = browser("viewer")
    told = events(viewer.get("/deployments/aaaaaaaa/log/live?after=1").text)
    assert [json.loads(each["data"]).get("text") for each in told] == ["two", "three", None]
    assert viewer.get("/deployments/aaaaaaaa/log.txt").text == "one\ntwo\nthree\n"


def test_what_is_not_there_is_a_404_everywhere(browser: BrowserMaker) -> None:
    viewer = browser("viewer")
    for part in ("", "/now", "/samples", "/live", "/log/live", "/log.txt"):
        assert viewer.get(f"/deployments/aaaaaaaa{part}").status_code == 404


def test_unloading_asks_for_it_once_and_viewers_may_not(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    assert browser("viewer").submit("/deployments/aaaaaaaa/unload").status_code == 403  # type: ignore[attr-defined]
    operator = browser("operator")
    for _ in range(2):
        operator.submit("/deployments/aaaaaaaa/unload", {"drain_s": "30", "idempotency_key": "once"})
    with database.reading() as session:
        (job,) = session.scalars(select(Job)).all()
        assert (job.kind, job.payload["drain_s"]) == ("undeploy", 30)


def test_deploying_again_takes_settings_host_and_secrets_along(
    browser: BrowserMaker, database: Database, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    add_one(database, state="stopped", ended_at=utc_now(), key="sesame", key_home=home, samples=False)
    operator = browser("operator")
    operator.submit("/deployments/aaaaaaaa/redeploy", {"idempotency_key": "once"})
    operator.submit("/deployments/aaaaaaaa/redeploy", {"idempotency_key": "once"})
    with database.reading() as session:
        made = session.scalars(select(Deployment).where(Deployment.id != "aaaaaaaa")).one().id
    page = operator.submit(f"/deployments/{made}/key").text  # type: ignore[attr-defined]
    assert "sesame" in page
    with database.reading() as session:
        assert "deployment.show-key" in [entry.action for entry in session.scalars(select(AuditEntry))]
    assert "sesame" not in operator.get(f"/deployments/{made}").text


def test_only_what_has_ended_can_be_forgotten(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    operator = browser("operator")
    assert operator.submit("/deployments/aaaaaaaa/forget").status_code == 409  # type: ignore[attr-defined]
    with database.writing() as session:
        row = session.get_one(Deployment, "aaaaaaaa")
        row.state, row.ended_at = "dead", utc_now()
    assert operator.submit("/deployments/aaaaaaaa/forget").status_code == 200  # type: ignore[attr-defined]
    assert operator.get("/deployments/aaaaaaaa").status_code == 404


def deploy(browser: Browser, **changes: str) -> Any:
    form = {"engine": "0123456789abcdef", "name": "served", "idempotency_key": "once"} | changes
    data = {"form_token": browser.form_token(), **form}
    return browser.post("/deployments/new", data=data, headers={"origin": ORIGIN}, follow_redirects=False)


def test_a_deployment_is_asked_for_once_with_what_was_typed(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_engine(session)
        add_replica(session, "0123456789abcdef", "other-host")
    operator = browser("operator")
    text = operator.get("/deployments/new?engine=0123456789abcdef").text
    assert "other-host" in text
    changes = {
        "host": "other-host",
        "memory": "kv_cache_tokens",
        "memory_value": "4096",
        "guard": "tags+content",
        "keyed": "on",
    }
    first, again = deploy(operator, **changes), deploy(operator, **changes)
    assert first.status_code == 303, first.text
    assert first.headers["location"] == again.headers["location"]
    with database.reading() as session:
        (row,) = session.scalars(select(Deployment)).all()
        assert (row.host, row.name, row.state) == ("other-host", "served", "starting")
        assert row.settings["overrides"]["kv_cache_tokens"] == 4096
        assert row.settings["overrides"]["guard"] == "tags+content"
        assert row.sealed is not None
    like = operator.get(f"/deployments/new?like={row.id}").text
    assert 'value="4096"' in like


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "no spaces"}, "letters, digits"),
        ({"http": "70000"}, "less than or equal to 65535"),
        ({"http": "8000", "grpc": "8000"}, "two ports are the same"),
        ({"kind": "remote"}, "needs the HTTP URL"),
        ({"memory": "memory_fraction", "memory_value": "2"}, "less than or equal to 1"),
        ({"memory_value": "4096"}, "choose what this number is"),
        ({"max_batch_size": "many"}, "write a whole number"),
        ({"memory": "kv_cache_tokens"}, "How much</a>: write how many tokens, for example 4096"),
        ({"memory": "kv_cache_tokens", "memory_value": "a few"}, "write how many tokens"),
        ({"memory": "memory_fraction"}, "write which share, for example 0.5"),
        ({"memory": "all_of_it", "memory_value": "1"}, "choose one of these"),
        ({"name": "tiny"}, "is served on"),
        ({"host": "nowhere"}, "has no live worker"),
        ({"engine": ""}, "choose an engine"),
        ({"keyed": "on", "api_key": "two words"}, "without spaces"),
    ],
)
def test_a_wrong_form_comes_back_with_what_was_typed_and_no_secret(
    browser: BrowserMaker, database: Database, changes: dict[str, str], says: str
) -> None:
    add_one(database)
    answer = deploy(browser("operator"), **({"max_waiting": "77", "control_value": "hush"} | changes))
    assert answer.status_code == 422
    assert says in answer.text
    assert 'value="77"' in answer.text
    assert "hush" not in answer.text
    assert "two words" not in answer.text


def test_what_would_run_and_what_cannot_is_said_while_typing(
    browser: BrowserMaker, database: Database, tiny_engine: Engine
) -> None:
    manifest = tiny_engine.manifest.model_dump(mode="json")
    with database.writing() as session:
        add_engine(session, manifest=manifest)
        add_deployment(session, openai=FRONT)

    operator = browser("operator")

    def check(**changes: str) -> str:
        form = {"engine": "0123456789abcdef", "name": "served"} | changes
        answer = operator.submit("/deployments/new/check", form)
        assert answer.status_code == 200  # type: ignore[attr-defined]
        return str(answer.text)  # type: ignore[attr-defined]

    assert "32 tokens in 2 pages" in check(memory="kv_cache_tokens", memory_value="32", page_tokens="16")
    assert "at most 32 tokens in this pool; longer answers are cut" in check(memory="kv_cache_tokens", memory_value="32")
    assert "longer answers are cut" not in check()
    assert "<li>How much: write how many tokens, for example 4096</li>" in check(memory="kv_cache_tokens")
    assert "is above the model" in check(max_seq_len="1000000")
    assert "free memory" in check(memory="kv_cache_bytes", memory_value=str(2**50))
    assert "is served on" in check(name="tiny")
    assert "could use it" in check(address="0.0.0.0")
    assert "could use it" not in check(address="0.0.0.0", keyed="on")
    assert deploy(operator, max_seq_len="1000000").status_code == 422


def test_the_list_and_a_page_take_as_many_statements_however_much_there_is(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    viewer = browser("viewer")

    def statements(path: str) -> int:
        with count_queries(database) as seen:
            assert viewer.get(path).status_code == 200
        return len(seen)

    before = [statements(path) for path in ("/deployments", "/deployments/aaaaaaaa", "/playground")]
    for index in range(8):
        add_one(database, f"bbbbbbb{index}", name=f"more-{index}")
    with database.writing() as session:
        add_lines(session, "aaaaaaaa", *(f"line {index}" for index in range(50)))
    assert [statements(path) for path in ("/deployments", "/deployments/aaaaaaaa", "/playground")] == before


def test_programs_do_what_pages_do(browser: BrowserMaker, database: Database) -> None:
    add_one(database)
    operator = browser("operator")
    headers = {"origin": ORIGIN, "x-form-token": operator.form_token(), "idempotency-key": "once"}
    listed = operator.get("/api/v1/deployments").json()
    assert (listed["total"], listed["items"][0]["deployment"]["id"]) == (1, "aaaaaaaa")
    assert operator.get("/api/v1/deployments/aaaaaaaa").json()["sample"]["values"]["running"] == 2
    assert len(operator.get("/api/v1/deployments/aaaaaaaa/samples").json()) == 6
    settings = {"engine_id": "0123456789abcdef", "name": "served", "keyed": True}
    wanted = {"settings": settings, "api_key": "sesame"}
    asked = [operator.post("/api/v1/deployments", json=wanted, headers=headers) for _ in range(2)]
    assert [each.status_code for each in asked] == [202, 202]
    assert asked[0].json() == asked[1].json()
    assert asked[0].headers["location"] == f"/api/v1/deployments/{asked[0].json()['deployment_id']}"
    assert "sesame" not in operator.get(asked[0].headers["location"]).text
    unloaded = operator.post("/api/v1/deployments/aaaaaaaa/unload", headers=headers | {"idempotency-key": "two"})
    assert unloaded.status_code == 202
    problem = operator.delete("/api/v1/deployments/aaaaaaaa", headers=headers)
    assert (problem.status_code, problem.headers["content-type"]) == (409, "application/problem+json")


def test_viewers_do_not_deploy(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_engine(session)
    viewer = browser("viewer")
    assert viewer.get("/deployments/new").status_code == 403
    assert deploy(viewer).status_code == 403


def test_a_host_that_is_silent_is_said(browser: BrowserMaker, database: Database) -> None:
    add_one(database, samples=False)
    with database.writing() as session:
        add_samples(session, last=utc_now() - timedelta(minutes=2))
    assert f"running on {HOST}" in browser("viewer").get("/deployments/aaaaaaaa").text
