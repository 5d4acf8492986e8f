"""Deployments, their samples and logs as they are shown; and what programs are made for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deploying import ENGINE_ID, HOST, add_engine
from sqlalchemy import event

from roundhouse.build.home import Home
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.deployments.log_rows import add_lines
from roundhouse.console.deployments.queries import DeploymentFilter, deployment, deployments, log_lines, samples
from roundhouse.console.deployments.settings import DeploymentSettings
from roundhouse.console.deployments.snippets import snippets
from roundhouse.console.errors import NotFoundError
from roundhouse.console.integrity.queries import EventFilter, events, totals, verdict
from roundhouse.console.integrity.records import EventRow
from roundhouse.console.models import Deployment, DeploymentSample, DeploymentState, IntegrityRecord
from roundhouse.console.paging import PageOf
from roundhouse.serve.triton.samples import Sample

NOW = utc_now()
AT = {"http": "http://127.0.0.1:1", "grpc": "127.0.0.1:2", "openai": "http://127.0.0.1:3/v1", "metrics": "m", "chat": True}


def row(number: int, state: DeploymentState = "ready", **changes: Any) -> Deployment:
    settings = DeploymentSettings(engine_id=ENGINE_ID, name=f"model-{number}", **changes.pop("settings", {}))
    values: dict[str, Any] = {
        "id": f"{number:08x}", "name": settings.name, "engine_id": ENGINE_ID, "kind": "local", "host": HOST, "home": "/h",
        "settings": settings.model_dump(mode="json"), "state": state, "endpoints": AT, "restarts": 0, "created_by": "olga",
        "created_at": NOW + timedelta(seconds=number), "changed_at": NOW, "ready_at": NOW - timedelta(hours=1),
    }  # fmt: skip
    return Deployment(**values | changes)


def sample(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(Sample.model_fields, 0) | {"guard_alive": True, "tokens_come_out": True} | values


def record(number: int, **values: Any) -> IntegrityRecord:
    known: dict[str, Any] = {
        "at": NOW + timedelta(seconds=number), "host": HOST, "home": "/h", "engine_id": ENGINE_ID, "deployment_id": f"{1:08x}",
        "event": f"r/{number}/0", "kind": "tag", "request_id": "r", "answer": 0, "step": number, "column": 2, "page": 5,
        "expected_tag": 7, "found_tag": 9, "last_holders": [],
    }  # fmt: skip
    return IntegrityRecord(**known | values)


@pytest.fixture
def filled(database: Database, tmp_path: Path) -> Database:
    add_engine(database, Home(tmp_path))
    with database.writing() as session:
        session.add_all([row(1), row(2, "failed", endpoints=None, reason="no memory"), row(3, "unready", host="there")])
        session.flush()
        last = utc_now()
        before = last - timedelta(seconds=8)
        session.add_all(
            [
                DeploymentSample(deployment_id=f"{1:08x}", at=before, values=sample(generated_tokens=10, steps=1)),
                DeploymentSample(
                    deployment_id=f"{1:08x}", at=last, values=sample(generated_tokens=90, steps=5, tag_checks=5, pages_free=9)
                ),
                record(1),
                record(2, kind="content", deployment_id=None),
                record(3, deployment_id="forgotten"),
            ]
        )
        add_lines(session, f"{1:08x}", [(number, f"line {number}") for number in range(1, 10)])
    return database


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """The queries that are made inside."""
    found: list[str] = []

    def note(*seen: Any) -> None:
        if seen[2].lstrip().upper().startswith("SELECT"):
            found.append(seen[2])

    event.listen(database.engine, "before_cursor_execute", note)
    yield found
    event.remove(database.engine, "before_cursor_execute", note)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({}, [3, 2, 1]),
        ({"state": "live"}, [3, 1]),
        ({"state": "ended"}, [2]),
        ({"state": "ready"}, [1]),
        ({"host": "there"}, [3]),
        ({"engine": "another"}, []),
        ({"text": "MODEL-2"}, [2]),
        ({"text": "tin"}, [3, 2, 1]),
        ({"text": "%"}, []),
    ],
)
def test_a_list_has_what_is_wanted_the_newest_first(filled: Database, wanted: dict[str, Any], numbers: list[int]) -> None:
    with filled.reading() as session, statements(filled) as asked:
        found = deployments(session, DeploymentFilter(**wanted), PageOf())
    assert [each.id for each in found.items] == [f"{number:08x}" for number in numbers]
    assert found.total == len(numbers)
    assert len(asked) == 2


def test_a_list_has_pages(filled: Database) -> None:
    with filled.reading() as session:
        found = deployments(session, DeploymentFilter(), PageOf(number=2, size=2))
    assert ([each.name for each in found.items], found.total, found.pages) == (["model-1"], 3, 2)
    first = found.items[0]
    assert (first.engine_name, first.openai, first.live) == ("tiny", AT["openai"], True)


def test_one_is_shown_with_what_it_counts(filled: Database) -> None:
    with filled.reading() as session, statements(filled) as asked:
        found = deployment(session, f"{1:08x}")
    assert len(asked) == 2
    assert found.rates is not None
    assert found.rates.generated_tokens == 10.0
    assert found.sample is not None
    assert found.sample.values.pages_free == 9
    assert (found.uptime_s or 0) > 3500
    with filled.reading() as session:
        failed = deployment(session, f"{2:08x}")
        with pytest.raises(NotFoundError, match="there is no deployment none"):
            deployment(session, "none")
    assert (failed.sample, failed.rates, failed.uptime_s, failed.openai, failed.reason) == (None, None, None, None, "no memory")
    assert snippets(failed) == ()


def test_samples_and_lines_go_on_from_where_somebody_was(filled: Database) -> None:
    id_ = f"{1:08x}"
    with filled.reading() as session:
        all_of_them = samples(session, id_, NOW - timedelta(minutes=15))
        assert [each.values.generated_tokens for each in all_of_them] == [10, 90]
        assert [each.values.generated_tokens for each in samples(session, id_, all_of_them[0].at)] == [90]
        lines = log_lines(session, id_, 3, 2)
        assert [(line.number, line.text) for line in lines] == [(4, "line 4"), (5, "line 5")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [({}, [3, 2, 1]), ({"kind": "content"}, [2]), ({"deployment": f"{1:08x}"}, [1]), ({"engine": "another"}, [])],
)
def test_events_are_found_and_can_be_read(filled: Database, wanted: dict[str, Any], found: list[int]) -> None:
    with filled.reading() as session, statements(filled) as asked:
        page = events(session, EventFilter(**wanted), PageOf())
    assert [each.step for each in page.items] == found
    assert len(asked) == 2
    names = {each.step: each.deployment_name for each in page.items}
    assert {1: "model-1", 2: None, 3: None}.items() >= names.items()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "Request r was stopped before step 1: page 5 should carry its tag 7, but it carries tag 9."),
        ({"found_tag": 0}, "but nobody holds it"),
        ({"found_tag": None}, "but there is no such page"),
        ({"kind": "content"}, "page 5 no longer held what had been written into it"),
        ({"kind": "count"}, "its page count was impossible"),
        ({"page": None}, "has no column 2"),
    ],
)
def test_an_event_is_a_sentence(values: dict[str, Any], words: str) -> None:
    fields = {name: getattr(record(1, **values), name, None) for name in EventRow.model_fields}
    assert words in EventRow.model_validate(fields | {"id": 1}).sentence


def test_whether_all_is_well_is_one_sentence(filled: Database) -> None:
    with filled.reading() as session:
        found = totals(session)
    assert [(each.name, each.tag_checks, each.pages) for each in found] == [("model-1", 5, 9)]
    assert verdict(found).sentence == "All is well: 5 checks, 0 mismatches over 1 deployment."
    assert verdict([]).well
    bad = found[0].model_copy(update={"tag_mismatches": 2, "pages_quarantined": 1, "guard_alive": False})
    said = verdict([*found, bad])
    assert not said.well
    assert "model-1 runs steps without its page check" in said.sentence
    assert "2 rows were stopped" in said.sentence
    assert "1 of 9 pages are quarantined" in said.sentence


def test_snippets_name_the_host_where_it_listens_everywhere(filled: Database) -> None:
    with filled.writing() as session:
        session.add(row(4, settings={"address": "0.0.0.0"}, host="gpu-7", endpoints=AT | {"chat": False}))
        session.add(row(5))
    with filled.reading() as session:
        everywhere, here = (deployment(session, f"{number:08x}") for number in (4, 5))
    assert all("gpu-7" in each.text and "127.0.0.1" not in each.text for each in snippets(everywhere))
    assert all("127.0.0.1" in each.text for each in snippets(here))
    assert "/chat/completions" in snippets(here)[0].text
    assert "/v1/completions" in snippets(everywhere)[0].text
    assert "authorization" not in snippets(here)[0].text


def test_what_a_row_holds_runs_nothing_when_its_snippet_is_pasted(filled: Database) -> None:
    odd = "http://a/$(touch x);b"
    with filled.writing() as session:
        session.add(row(4, endpoints=AT | {"http": odd, "openai": odd}))
    with filled.reading() as session:
        told = {each.name: each.text for each in snippets(deployment(session, f"{4:08x}"))}
    assert shlex.split(told["curl"])[1] == f"{odd}/chat/completions"
    assert shlex.split(told["triton-curl"])[2] == f"{odd}/v2/models/model-4/generate_stream"
