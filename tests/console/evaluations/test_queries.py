"""Lists of evaluations, one of them, and whether engines have passed the gate."""

from __future__ import annotations

import pytest
from built import ID, add_built
from counting import count_queries
from measured import add_benchmarks, add_evaluations, benchmark_header, evaluation_content

from roundhouse.console.access.actor import Actor
from roundhouse.console.database.database import Database
from roundhouse.console.engines.queries import engine_detail, list_engines
from roundhouse.console.engines.records import EngineFilter
from roundhouse.console.errors import NotFoundError
from roundhouse.console.evaluations.deleting import delete_evaluation
from roundhouse.console.evaluations.queries import evaluation_detail, gates_of, list_evaluations
from roundhouse.console.evaluations.records import EvaluationFilter
from roundhouse.console.paging import PageOf

ANN = Actor(1, "ann", "operator", "browser", "x")
FIRST = f"{0:016x}"


def listed(database: Database, **wanted: object) -> list[str]:
    with database.reading() as session:
        return [row.id for row in list_evaluations(session, EvaluationFilter.model_validate(wanted), PageOf()).items]


def test_filters_find_what_is_all_of_it(database: Database) -> None:
    with database.writing() as session:
        ids = add_evaluations(session, 3)
        failed = add_evaluations(session, 1, first=3, gate="failed")
        broken = add_evaluations(session, 1, first=4, state="failed")
    assert listed(database) == [*broken, *failed, *reversed(ids)]
    assert listed(database, gate="failed") == failed
    assert listed(database, state="failed") == listed(database, gate="not measured") == broken
    assert listed(database, engine=FIRST) == [*broken, ids[0]]
    assert listed(database, text="INT4 fp8 needle") == failed
    with database.reading() as session, pytest.raises(NotFoundError):
        evaluation_detail(session, "nothing")


def test_the_gate_is_what_the_latest_that_measured_it_says(database: Database) -> None:
    with database.writing() as session:
        add_evaluations(session, 1, first=0, gate="failed")
    with database.reading() as session:
        assert gates_of(session, [FIRST, "none"])["none"].state == "not measured"
        assert gates_of(session, [FIRST])[FIRST].state == "failed"
    with database.writing() as session:
        (passed,) = add_evaluations(session, 1, first=4)
        add_evaluations(session, 1, first=8, gate="not measured")
        add_evaluations(session, 1, first=12, state="interrupted", gate="failed")
    with database.reading() as session:
        gate = gates_of(session, [FIRST])[FIRST]
    assert (gate.state, gate.evaluation_id, gate.worst_difference) == ("passed", passed, pytest.approx(0.4))
    with database.writing() as session:
        delete_evaluation(session, ANN, passed)
    with database.reading() as session:
        assert gates_of(session, [FIRST])[FIRST].state == "failed"


def test_an_engine_tells_what_was_measured_of_it(database: Database) -> None:
    subject = benchmark_header(0).subject.model_copy(update={"engine_id": ID})
    with database.writing() as session:
        add_built(session)
        add_benchmarks(session, 2, subject=subject)
        add_benchmarks(session, 1, first=2, subject=subject, state="running", part=0.5)
        add_evaluations(session, 1, subject=subject)
    with database.reading() as session:
        found = engine_detail(session, ID)
        (row,) = list_engines(session, EngineFilter(), PageOf()).items
    assert (found.benchmarks, found.evaluations, found.evaluated.state, found.gate, row.gate) == (3, 1, *["passed"] * 3)
    assert found.tokens_per_s_most is not None


def test_statements_do_not_grow_with_rows(database: Database) -> None:
    counts = []
    for first in (0, 20):
        with database.writing() as session:
            ids = add_evaluations(session, 20, first=first)
        with count_queries(database) as seen, database.reading() as session:
            list_evaluations(session, EvaluationFilter(text="tiny"), PageOf(size=200))
            found = evaluation_detail(session, ids[0])
        counts.append(len([each for each in seen if each.startswith("SELECT")]))
        assert found.all_scores == evaluation_content(first).scores
    assert counts[0] == counts[1] == 3 + 3
