"""Several plans side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from roundhouse.build.planner.side_by_side import brief_facts

from ..benchmarks.calibrating import MeasuredHere
from ..models_allowed import AllowedModels
from .answer import PlanAnswer, answer_to
from .devices import Devices
from .form import MOST_COMPARED, PlanForm
from .shown import ShownPlan, shown_plan

__all__ = ["Column", "Comparison", "compare"]


@dataclass(frozen=True)
class Column:
    """One of the plans."""

    is_now: bool
    """Whether it is the one in the form."""
    shown: ShownPlan | None
    """None where it cannot be planned any more."""
    problem: str
    """Why not."""
    edit: str
    """The address of the page with this plan in the form, and the others beside it."""
    without: str
    """The address of the page without this plan."""


@dataclass(frozen=True)
class Comparison:
    """Plans as columns, and what they say in rows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def compare(
    answer: PlanAnswer,
    devices: Devices,
    models: AllowedModels,
    usual_price: float | None = None,
    measured: MeasuredHere | None = None,
) -> Comparison | None:
    """The plan of a form beside those that its address names; None where it names none."""
    form = answer.form
    if not form.compared:
        return None
    now = form.query
    queries = [now, *(query for query in form.compared if query != now)][:MOST_COMPARED] if answer.plan else list(form.compared)
    answers = {query: _answer(query, devices, models, usual_price, measured) for query in queries if query != now} | {
        now: answer
    }
    columns = [_column(query, now, form, answers[query]) for query in queries]
    return Comparison(tuple(columns), tuple(_rows(columns)))


def _rows(columns: Sequence[Column]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What plans say, by label; a dash for those that cannot be planned any more."""
    facts = brief_facts([column.shown.report for column in columns if column.shown])
    for label, texts in facts.items():
        said = iter(texts)
        yield label, tuple(next(said) if column.shown else "–" for column in columns)


def _answer(
    query: str, devices: Devices, models: AllowedModels, usual_price: float | None, measured: MeasuredHere | None
) -> PlanAnswer:
    return answer_to(PlanForm.read(parse_qsl(query)), devices, models, usual_price, measured)


def _column(query: str, now: str, form: PlanForm, answer: PlanAnswer) -> Column:
    others = [each for each in form.compared if each != query]
    edited = PlanForm.read(parse_qsl(query)).compared_with(_unique([*form.compared, now]))
    return Column(
        is_now=query == now,
        shown=shown_plan(answer.plan, answer.recipe, answer.form) if answer.plan and answer.recipe else None,
        problem="; ".join(answer.problems.values()),
        edit=edited.full_query,
        without=form.compared_with(others).full_query,
    )


def _unique(queries: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(query for query in queries if query))
