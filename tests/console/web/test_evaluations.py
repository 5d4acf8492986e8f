"""The pages of evaluations, as browsers meet them."""

from __future__ import annotations

import gzip
import json

import pytest
from browsing import Browser, BrowserMaker
from built import ID, add_built
from measured import HOME, HOST, add_evaluations, benchmark_header
from populated import add_worker
from sqlalchemy import select, update

from roundhouse.console.database.database import Database
from roundhouse.console.models import EvaluationRun, EvaluationScore, Job, RecordFile

EVALUATION = "e00000000000"


def text_of(browser: Browser, path: str, status: int = 200) -> str:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def keep_items(database: Database) -> None:
    """Questions: 0 right by both, 1 lost, 2 won, 3 wrong by both; and one of another task, and one that is none."""
    scores = [(1, 1), (0, 1), (1, 0), (0, 0)]
    items = [
        {"task": "arithmetic", "number": number, "score": score, "base_score": base, "asked": f"question {number}?",
         "answered": "<b>7</b>", "wanted": "8"}
        for number, (score, base) in enumerate(scores)
    ]  # fmt: skip
    lines = [*items, {**items[0], "task": "needle"}, {"task": "arithmetic"}]
    content = gzip.compress("".join(f"{json.dumps(each)}\n" for each in lines).encode())
    with database.writing() as session:
        session.execute(update(RecordFile).where(RecordFile.record_id == EVALUATION).values(content=content))


def test_nothing_evaluated_yet_says_what_evaluates(browser: BrowserMaker) -> None:
    assert "Evaluate something" in text_of(browser("operator"), "/evaluations")
    assert "/evaluations/new" not in text_of(browser("viewer"), "/evaluations")


def test_the_list_is_filtered_by_its_address(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_evaluations(session)
        add_evaluations(session, first=1, gate="failed")
    viewer = browser("viewer")
    text = text_of(viewer, "/evaluations?gate=failed")
    assert "/evaluations/e00000000001" in text
    assert f"/evaluations/{EVALUATION}" not in text
    assert "-5.0 points" in text
    assert "No evaluation fits" in text_of(viewer, "/evaluations?text=nothing+like+it")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("passed", "It passed the gate"),
        ("failed", "arithmetic is 5.0 points down"),
        ("not measured", "No share of right answers was compared with a base"),
    ],
)
def test_an_evaluation_says_what_its_gate_came_to(browser: BrowserMaker, database: Database, gate: str, said: str) -> None:
    with database.writing() as session:
        add_evaluations(session, gate=gate)
    text = text_of(browser("viewer"), f"/evaluations/{EVALUATION}")
    assert said in text
    assert ("gaps-limit" in text) == (gate != "not measured")
    assert ("Against the base, as a table" in text) == ("Difference, points" in text) == (gate != "not measured")
    assert ("gaps-bad" in text) == (gate == "failed")
    assert "Delete" not in text


def test_one_that_goes_on_is_followed(browser: BrowserMaker, database: Database) -> None:
    add_worker(database, HOST, HOME)
    with database.writing() as session:
        add_evaluations(session, state="running")
    viewer = browser("viewer")
    assert f'hx-get="/evaluations/{EVALUATION}/now?scores=1"' in text_of(viewer, f"/evaluations/{EVALUATION}")
    assert "1 of 3 tasks scored" in text_of(viewer, f"/evaluations/{EVALUATION}/now?scores=1")
    assert viewer.get(f"/evaluations/{EVALUATION}/now?scores=0").headers["hx-refresh"] == "true"


def test_questions_are_shown_with_the_wrong_ones_first(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_evaluations(session)
    keep_items(database)
    viewer = browser("viewer")
    text = text_of(viewer, f"/evaluations/{EVALUATION}/items?task=arithmetic")
    order = [text.index(f"question {number}?") for number in (1, 3, 0, 2)]
    assert order == sorted(order), "what was lost, what both got wrong, and the rest"
    assert "&lt;b&gt;7&lt;/b&gt;" in text
    assert "1 line of the file could not be read" in text
    lost = text_of(viewer, f"/evaluations/{EVALUATION}/items?task=arithmetic&show=lost")
    assert "question 1?" in lost
    assert "question 3?" not in lost
    assert text_of(viewer, f"/evaluations/{EVALUATION}/items?task=nothing", 404)


def test_an_evaluation_is_asked_for(browser: BrowserMaker, database: Database) -> None:
    base = "f" * 16
    with database.writing() as session:
        add_built(session)
        add_built(session, base, "base", weights="bf16", kv_cache="bf16")
    operator = browser("operator")
    wish = {"engine": ID, "task": "rh-needle", "against": "engine", "against_engine": base, "limit": "50"}
    answer = operator.submit("/evaluations/new", wish, page=f"/evaluations/new?engine={ID}")
    with database.reading() as session:
        job = session.scalars(select(Job)).one()
    assert str(answer.url).endswith(f"/builds/{job.id}")  # type: ignore[attr-defined]
    asked = job.payload["wish"]
    assert (asked["engine"], asked["against"], asked["tasks"], asked["limit"]) == (ID, base, ["rh-needle"], 50)


def test_what_is_wrong_is_said_at_its_field(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
    wish = {"engine": ID, "against": "engine", "limit": "few"}
    answer = browser("operator").submit("/evaluations/new", wish, page="/evaluations/new")
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert 'id="against_engine-error"' in answer.text  # type: ignore[attr-defined]
    assert 'id="limit-error"' in answer.text  # type: ignore[attr-defined]


def test_an_engine_shows_its_gate_and_what_decided_it(browser: BrowserMaker, database: Database) -> None:
    of_it = benchmark_header().subject.model_copy(update={"engine_id": ID})
    with database.writing() as session:
        add_built(session)
        add_evaluations(session, gate="failed", subject=of_it)
    viewer = browser("viewer")
    assert f'<a href="/evaluations/{EVALUATION}"><span class="state state-bad"' in text_of(viewer, f"/engines/{ID}")
    assert "gaps-bad" in text_of(viewer, f"/engines/{ID}?tab=accuracy")


def test_deleting_takes_it_from_the_list(browser: BrowserMaker, database: Database) -> None:
    with database.writing() as session:
        add_evaluations(session)
    operator = browser("operator")
    operator.submit(f"/evaluations/{EVALUATION}/delete", page=f"/evaluations/{EVALUATION}")
    assert operator.get(f"/evaluations/{EVALUATION}").status_code == 404


@pytest.mark.parametrize("part", ["header", "score"])
def test_one_that_this_version_cannot_read_says_so_and_hides_nothing_else(
    browser: BrowserMaker, database: Database, part: str
) -> None:
    with database.writing() as session:
        add_evaluations(session, 2)
        row = session.get_one(EvaluationRun, EVALUATION)
        add_built(session, row.engine_id or "", "tiny")
        engine = row.engine_id
        if part == "header":
            row.header = row.header | {"tasks": {"of": "another version"}}
        else:
            session.execute(
                update(EvaluationScore)
                .where(EvaluationScore.evaluation_id == EVALUATION)
                .values(record={"of": "another version"})
            )
    viewer = browser("viewer")
    for path in (f"/evaluations/{EVALUATION}", f"/evaluations/{EVALUATION}/items", f"/api/v1/evaluations/{EVALUATION}"):
        text = text_of(viewer, path, 409)
        assert f"{EVALUATION} cannot be shown" in text
        assert "Another version of Roundhouse" in text
    text_of(viewer, "/evaluations")
    text_of(viewer, "/evaluations/e00000000001")
    assert EVALUATION in text_of(viewer, f"/engines/{engine}?tab=accuracy")
