"""Page maps as browsers and programs meet them, before a made-up front."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browsing import Browser, BrowserMaker
from counting import count_queries
from deployed import add_deployment, add_samples
from fronts_made_up import MadeUpFront

from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.models import Deployment, IntegrityRecord
from roundhouse.serve.page_map import HeldBy, HoldingRequest, PageMap, PageRun

REQUEST = "3f0c5b7e" * 4
MAP = PageMap(
    pages=5,
    held_by=[HeldBy([HoldingRequest(REQUEST, "<b>mine")]), HeldBy([], prefix_cache=True)],
    runs=[PageRun(2, "used", 118, 0), PageRun(1, "shared", 9, 1), PageRun(1, "quarantined", 0, -1), PageRun(1, "free", 0, -1)],
)
HERE = "/deployments/aaaaaaaa/pages"
HELD = "pages 0–1: in use, tags 118–119, held by request 3f0c5b7e (&lt;b&gt;mine)"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The console's, as the fixture ``browser`` makes it."""
    return Home(tmp_path / "home")


def followed(browser: Browser, path: str = HERE) -> str:
    """What a script of ours gets."""
    answer = browser.get(path, headers={"hx-request": "true"})
    assert answer.status_code == 200, answer.text
    assert "<html" not in answer.text
    return answer.text


def serve(database: Database, front: MadeUpFront | None, **changes: Any) -> None:
    with database.writing() as session:
        add_deployment(session, openai=front.url if front else "http://127.0.0.1:1/v1", **changes)
        add_samples(session)


def test_a_map_names_who_holds_each_page(browser: BrowserMaker, database: Database, home: Home) -> None:
    with MadeUpFront(page_map=msgspec.json.encode(MAP)) as front:
        serve(database, front, key="sesame", key_home=home)
        text = followed(browser("viewer"))
    assert front.asked == [("pages", {"model": "tiny"}, "Bearer sesame")]
    assert f'<path class="page page-used" d="M1 1h8v8h-8zM11 1h8v8h-8z"><title>{HELD}</title>' in text
    assert "page 2: shared prefix, tag 9, held by the prefix cache" in text
    assert '<div class="disclosure-body page-rows" id="page-rows" data-keeps hx-swap-oob="true">' in text
    assert f'<code title="{REQUEST}">3f0c5b7e</code> &lt;b&gt;mine' in text
    assert "<b>" not in text


def test_without_scripts_it_is_a_page_with_its_table_open(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront(page_map=msgspec.json.encode(MAP)) as front:
        serve(database, front)
        viewer = browser("viewer")
        text = viewer.get(f"{HERE}?marked=3").text
        assert "<strong>page 3: quarantined.</strong>" in text
        assert "there is no such page now" in viewer.get(f"{HERE}?marked=99").text
        small = followed(viewer, f"{HERE}?small=true")
    assert '<details class="disclosure" open>' in text
    assert HELD in text
    assert 'page page-quarantined page-marked"' in text
    assert f'hx-get="{HERE}?marked=3"' in text
    assert "2 in use, 1 shared, 1 quarantined, 1 free" in small
    assert "page-rows" not in small


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"refuses": (401, "no")}, "tiny refuses the console&#39;s API key"),
        ({"refuses": (503, "the engine process is down")}, "tiny cannot say it now: the engine process is down"),
        ({}, "does not tell it of tiny"),
        ({"page_map": b"{"}, "what tiny says of its pages cannot be read"),
        ({"page_map": b'{"pages":2,"held_by":[],"runs":[[2,"used",1,0]]}'}, "cannot be read"),
        ({"page_map": b'{"pages":2,"held_by":[],"runs":[[1,"free",0,-1]]}'}, "cannot be read"),
    ],
)
def test_counts_are_shown_with_the_reason_where_it_cannot_be_asked(
    browser: BrowserMaker, database: Database, says: dict[str, Any], why: str
) -> None:
    with MadeUpFront(**says) as front:
        serve(database, front)
        text = followed(browser("viewer"))
    assert why in text
    assert "Counts of the sample" in text
    assert re.search(r"free</th><td class=\"number\">90<", text)


def test_nobody_is_asked_where_nobody_listens_to_this_host(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront(page_map=msgspec.json.encode(MAP)) as front:
        serve(database, front, host="elsewhere")
        assert "listens only to its own host, elsewhere" in followed(browser("viewer"))
        assert front.asked == []


def test_a_deployment_that_is_gone_or_not_there_yet_is_no_error(browser: BrowserMaker, database: Database) -> None:
    serve(database, None)
    with database.writing() as session:
        add_deployment(session, "bbbbbbbb", state="starting", name="new")
        add_deployment(session, "cccccccc", state="stopped", name="old", ended_at=utc_now())
    viewer = browser("viewer")
    assert "tiny does not answer at http://127.0.0.1:1/v1" in followed(viewer)
    with database.writing() as session:
        session.get_one(Deployment, "aaaaaaaa").state = "stopping"
    assert "tiny is being unloaded." in followed(viewer)
    assert "new is starting and does not answer yet" in followed(viewer, "/deployments/bbbbbbbb/pages")
    assert "old is stopped" in followed(viewer, "/deployments/cccccccc/pages")
    assert viewer.get("/deployments/nothing/pages").status_code == 404


def test_one_whose_host_is_silent_is_not_said_to_be_ready(browser: BrowserMaker, database: Database) -> None:
    serve(database, None, seen_at=utc_now() - timedelta(minutes=5))
    chip = browser("viewer").get(HERE).text.partition('id="page-chip"')[2].partition("\n")[0]
    assert "silent" in chip
    assert "ready" not in chip


def test_its_page_shows_counts_at_once_and_asks_nobody(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront(page_map=msgspec.json.encode(MAP)) as front:
        serve(database, front)
        text = browser("viewer").get("/deployments/aaaaaaaa").text
        assert front.asked == []
    assert f'data-while-seen hx-get="{HERE}" hx-trigger="load, every 3s"' in text
    assert f'<a href="{HERE}">Who holds them</a>' in text
    assert "page page-quarantined" in text


def test_the_integrity_pages_show_the_pool_beside_the_event(browser: BrowserMaker, database: Database) -> None:
    serve(database, None, ready_at=utc_now() - timedelta(hours=1))
    fields: dict[str, Any] = {
        "host": "one", "home": "h", "engine_id": "0123456789abcdef", "kind": "tag", "request_id": "mine", "answer": 0,
        "step": 4, "column": 1, "page": 3, "expected_tag": 2, "found_tag": 7, "last_holders": [],
    }  # fmt: skip
    with database.writing() as session:
        records = [
            IntegrityRecord(at=utc_now() - timedelta(hours=ago), event=f"mine/{ago}/0", deployment_id=of, **fields)
            for ago, of in ((0, "aaaaaaaa"), (2, "aaaaaaaa"), (3, "gone"), (4, None))
        ]
        session.add_all(records)
        session.flush()
        fresh, before, of_gone, of_nobody = (each.id for each in records)
    viewer = browser("viewer")
    text = viewer.get(f"/integrity/events/{fresh}").text
    assert f'hx-get="{HERE}?marked=3"' in text
    assert "started again since the event" not in text
    assert "started again since the event" in viewer.get(f"/integrity/events/{before}").text
    for event in (of_gone, of_nobody):
        answer = viewer.get(f"/integrity/events/{event}")
        assert answer.status_code == 200
        assert "data-while-seen" not in answer.text
    assert f'hx-get="{HERE}?small=true" hx-trigger="load, every 5s"' in viewer.get("/integrity").text


def test_programs_get_the_same(browser: BrowserMaker, database: Database) -> None:
    with MadeUpFront(page_map=msgspec.json.encode(MAP)) as front:
        serve(database, front)
        operator = browser("operator")
        told = operator.get("/api/v1/deployments/aaaaaaaa/pages").json()
        front.page_map = None
        counted = operator.get("/api/v1/deployments/aaaaaaaa/pages").json()
    assert (told["asked"], told["pages"], told["counts"]["quarantined"]) == (True, 5, 1)
    held = next(row for row in told["rows"] if row["state"] == "used")
    assert held["held_by"]["requests"] == [{"request_id": REQUEST, "client_id": "<b>mine"}]
    assert held["ranges"] == [{"first": 0, "last": 1, "tag": 118}]
    assert (counted["asked"], counted["counts"]["free"], counted["rows"]) == (False, 90, [])
    assert "does not tell it of tiny" in counted["problem"]


def test_a_look_takes_as_many_statements_whoever_looks(browser: BrowserMaker, database: Database) -> None:
    serve(database, None)
    viewer = browser("viewer")
    followed(viewer)
    with count_queries(database) as seen:
        followed(viewer)
    assert len(seen) <= 6
