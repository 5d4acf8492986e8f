"""The pages of engines, as browsers and programs meet them."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from browsing import ORIGIN, Browser, BrowserMaker
from built import ID, add_built
from counting import count_queries
from deployed import add_deployment
from sqlalchemy import select

from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import EngineRecord, EngineReplica, Job

TABS = ("overview", "modules", "kv-scales", "quality", "files", "replicas", "lineage", "deployments", "benchmarks", "accuracy")


@pytest.fixture
def filled(database: Database) -> Database:
    with database.writing() as session:
        add_built(session, warnings=("a warning of the build",))
        add_built(session, "f" * 16, "other", kv_cache="bf16", weights="fp8")
    return database


def text_of(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def jobs(database: Database) -> list[tuple[str, str]]:
    with database.reading() as session:
        return [(job.kind, job.state) for job in session.scalars(select(Job).order_by(Job.id))]


def test_no_engine_yet_says_what_makes_one(browser: BrowserMaker) -> None:
    assert "No engine is here yet" in text_of(browser("viewer"), "/engines")


def test_filters_and_order_are_in_the_address(browser: BrowserMaker, filled: Database) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, "/engines?weights=fp8&sort=-name")
    assert "other</a>" in text
    assert f"/engines/{ID}" not in text
    assert '<option value="fp8" selected>' in text
    assert 'name="sort" value="-name"' in text  # the form keeps the order
    assert "/engines?weights=fp8&amp;sort=size" in text  # another order keeps the filters
    assert "No engine fits these filters" in text_of(viewer, "/engines?text=nothing+like+it")
    assert text_of(viewer, "/engines?sort=luck", 422)


@pytest.mark.parametrize("tab", TABS)
def test_each_part_of_an_engine_has_an_address(browser: BrowserMaker, filled: Database, tab: str) -> None:
    text = text_of(browser("viewer"), f"/engines/{ID}?tab={tab}")
    told = {
        "overview": "a warning of the build", "modules": "model.layers.*.mlp.up_proj", "kv-scales": "layer 1, v: 0.0625",
        "quality": "+10.0%", "files": "cd" * 32, "replicas": "/srv/roundhouse/engines", "lineage": "same files",
        "deployments": "Nobody serves this engine", "benchmarks": "Nobody has measured how fast",
        "accuracy": "Nobody has asked this engine",
    }  # fmt: skip
    assert told[tab] in text
    (current,) = re.findall(r'<a href="([^"]+)" aria-current="page">', text.partition('class="tabs"')[2])
    assert current == (f"/engines/{ID}" if tab == "overview" else f"/engines/{ID}?tab={tab}")


def test_an_engine_that_was_not_measured_says_so(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        add_built(session, "a" * 16, "copied", quality=None)
        assert session.get_one(EngineRecord, "a" * 16).kl is None
    viewer = browser("viewer")
    assert "Not measured: " in text_of(viewer, f"/engines/{'a' * 16}?tab=quality")
    for path in ("/engines?sort=-agreement", "/engines?sort=kl", f"/engines/{'a' * 16}", f"/engines/{ID}?tab=lineage"):
        assert "copied" in text_of(viewer, path)


def test_an_engine_of_another_version_still_has_its_page(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        session.get_one(EngineRecord, ID).manifest = {"format": 99}
    viewer = browser("viewer")
    for tab in TABS:
        text_of(viewer, f"/engines/{ID}?tab={tab}")
    assert "Another version of Roundhouse" in text_of(viewer, f"/engines/{ID}")


def test_what_it_shows_is_escaped(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        engine = session.get_one(EngineRecord, ID)
        engine.model = "<script>alert(1)</script>"
    viewer = browser("viewer")
    for path in ("/engines", f"/engines/{ID}", f"/engines/{ID}?tab=lineage"):
        assert "<script>alert" not in text_of(viewer, path)


def test_the_manifest_comes_as_a_file(browser: BrowserMaker, filled: Database) -> None:
    answer = browser("viewer").get(f"/engines/{ID}/engine.json")
    assert answer.headers["content-disposition"] == f'attachment; filename="tiny-{ID}-engine.json"'
    assert json.loads(answer.text)["id"] == ID


def test_there_may_be_no_such_engine(browser: BrowserMaker) -> None:
    viewer = browser("viewer")
    assert text_of(viewer, "/engines/nothing", 404)
    assert viewer.get("/api/v1/engines/nothing").status_code == 404


def test_verifying_makes_one_job_for_two_clicks_and_the_page_follows_it(browser: BrowserMaker, filled: Database) -> None:
    operator = browser("operator")
    page = f"/engines/{ID}?tab=replicas"
    before = text_of(operator, page)
    assert 'hx-trigger="every 2s"' not in before
    key = re.search(r'name="idempotency_key" value="([^"]+)"', before)
    assert key is not None
    for _ in range(2):
        answer: Any = operator.submit(f"/engines/{ID}/verify", {"idempotency_key": key[1]}, page=page)
        assert "Asked to verify it on one (job 1)" in answer.text
    assert jobs(filled) == [("verify", "queued")]
    assert 'hx-trigger="every 2s"' in text_of(operator, f"/engines/{ID}/replicas")


def test_deleting_says_what_goes_and_asks_for_a_removal(browser: BrowserMaker, filled: Database) -> None:
    operator = browser("operator")
    text = text_of(operator, f"/engines/{ID}/delete")
    assert f"/srv/roundhouse/engines/{ID}" in text
    assert "3,145,728 bytes" in text
    answer: Any = operator.submit(f"/engines/{ID}/delete", page=f"/engines/{ID}/delete")
    assert "Asked to remove it on one" in answer.text
    assert jobs(filled) == [("remove", "queued")]


def test_what_is_served_is_not_deleted(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        add_deployment(session, engine_id=ID, name="chat")
    operator = browser("operator")
    text = text_of(operator, f"/engines/{ID}/delete")
    assert '<a href="/deployments/aaaaaaaa">chat</a>' in text
    assert "<form" not in text.partition("<main")[2]
    answer: Any = operator.submit(f"/engines/{ID}/delete", page=f"/engines/{ID}")
    assert answer.status_code == 409
    assert jobs(filled) == []


def test_a_deployment_of_which_nobody_tells_is_not_called_ready(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        add_deployment(session, engine_id=ID, name="chat", host="far-away").seen_at = utc_now() - timedelta(hours=1)
    admin = browser("admin")
    for page in (f"/engines/{ID}?tab=deployments", f"/engines/{ID}/delete"):
        text = admin.get(page).text
        assert "silent" in text, page
        assert "ready" not in re.sub(r"<script.*?</script>", "", text.partition("<main")[2], flags=re.DOTALL), page


def test_what_is_gone_keeps_its_page(browser: BrowserMaker, filled: Database) -> None:
    with filled.writing() as session:
        session.query(EngineReplica).delete()
    operator = browser("operator")
    assert "No host has the files" in text_of(operator, f"/engines/{ID}")
    assert "nothing to delete" in text_of(operator, f"/engines/{ID}/delete")
    assert f"/deployments/new?engine={ID}" not in text_of(operator, f"/engines/{ID}")


def test_viewers_read_and_change_nothing(browser: BrowserMaker, filled: Database) -> None:
    viewer = browser("viewer")
    text = text_of(viewer, f"/engines/{ID}?tab=replicas")
    assert "Deploy</span>" not in text
    assert "/verify" not in text
    assert text_of(viewer, f"/engines/{ID}/delete", 403)
    answer: Any = viewer.submit(f"/engines/{ID}/verify", page="/")
    assert (answer.status_code, jobs(filled)) == (403, [])


def test_programs_do_the_same(browser: BrowserMaker, filled: Database) -> None:
    operator = browser("operator")
    listed = operator.get("/api/v1/engines", params={"weights": "fp8"}).json()
    assert [engine["name"] for engine in listed["items"]] == ["other"]
    found = operator.get(f"/api/v1/engines/{ID}").json()
    assert (found["state"], found["hosts"]) == ("present", ["one"])
    assert operator.get(f"/api/v1/engines/{ID}/manifest").json() == found["manifest"]
    headers = {"origin": ORIGIN, "x-form-token": operator.form_token(), "idempotency-key": "k"}
    answers = [operator.post(f"/api/v1/engines/{ID}/verify", headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    headers["idempotency-key"] = "another"
    assert operator.delete(f"/api/v1/engines/{ID}", headers=headers).json()[0]["kind"] == "remove"
    assert jobs(filled) == [("verify", "queued"), ("remove", "queued")]


def test_pages_take_as_many_statements_for_many_engines_as_for_few(browser: BrowserMaker, filled: Database) -> None:
    viewer = browser("viewer")
    paths = ("/engines", f"/engines/{ID}", f"/engines/{ID}?tab=lineage")

    def statements() -> list[int]:
        counts = []
        for path in paths:
            with count_queries(filled) as seen:
                text_of(viewer, path)
            counts.append(len(seen))
        return counts

    statements()  # the login is noted now and then, not now again
    few = statements()
    with filled.writing() as session:
        for number in range(10):
            add_built(session, f"{number:016x}", f"more-{number}")
            add_deployment(session, f"{number:08x}", engine_id=ID)
    assert statements() == few
    assert max(few) <= 16
