"""`roundhouse evaluate list`, `show` and `remove`: what was answered, read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.terminal import answer_console

if TYPE_CHECKING:
    from .records import Evaluation

__all__ = ["add_reading_commands", "print_evaluation"]

_Evaluation = Annotated[str, typer.Argument(metavar="ID", help="Of an evaluation, or how it begins; or: latest.")]


def add_reading_commands(group: typer.Typer) -> None:
    """Mount what reads evaluations beside what makes them."""
    group.command("list")(list_evaluations)
    group.command("show")(show)
    group.command("remove")(remove)


def list_evaluations(home: HomeOption = None, json: JsonOption = False) -> None:
    """List this home's evaluations, the newest first; damaged ones are named."""
    from .store import EvaluationStore
    from .view import evaluations_table

    found, damaged = EvaluationStore(home_at(home)).read_all()
    if json:
        print_json({"evaluations": [_as_json(each) for each in found], "damaged": damaged})
        return
    console = answer_console()
    if found:
        console.print(evaluations_table(found))
    elif not damaged:
        typer.echo("No evaluations yet. `roundhouse evaluate ENGINE` makes one.")
    for problem in damaged:
        console.print(f"! {problem}", style="yellow", markup=False, soft_wrap=True)


def show(
    evaluation: _Evaluation,
    items: Annotated[bool, typer.Option("--items", help="Also every question and answer.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Show what an evaluation came to."""
    from .store import EvaluationStore, read_evaluation, read_items

    folder = EvaluationStore(home_at(home)).records.find(evaluation)
    asked = list(read_items(folder)) if items else []
    found = read_evaluation(folder)
    if json:
        print_json({**_as_json(found), **({"items": [item.model_dump(mode="json") for item in asked]} if items else {})})
        return
    print_evaluation(found, json=False)
    for item in asked:
        typer.echo(f"{item.task} {item.number}: {item.score:g}  {item.asked!r} → {item.answered!r}  ({item.wanted})")


def remove(
    evaluations: Annotated[list[str], typer.Argument(metavar="ID...", help="Of evaluations, or how they begin; or: latest.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Delete evaluations, with all that was answered."""
    from ..history.removing import remove_records
    from .store import EvaluationStore
    from .view import about_evaluation

    records = EvaluationStore(home_at(home)).records
    remove_records(records, evaluations, about_evaluation, what="evaluations", yes=yes, json=json)


def print_evaluation(found: Evaluation, *, json: bool) -> None:
    """Print what an evaluation came to, and what the gate says."""
    from .view import gate_words, parts_table, scores_table

    if json:
        print_json(_as_json(found))
        return
    console = answer_console()
    header = found.header
    against = f" against {header.base.name}" if header.base else ""
    typer.echo(f"evaluation {header.id} of {header.subject.name}{against}: {found.state}")
    if found.problem:
        typer.echo(found.problem)
    console.print(scores_table(found))
    if any(score.parts for score in found.scores):
        console.print(parts_table(found.scores))
    for each in found.unmeasured:
        typer.echo(f"{each.task} was not measured: {each.reason}")
    for score in found.scores:
        if score.uncompared and not score.is_share:  # of shares the gate tells it
            typer.echo(f"{score.task} was not compared: {score.uncompared}")
    for line in gate_words(found):
        typer.echo(line)


def _as_json(found: Evaluation) -> dict[str, Any]:
    return {"id": found.header.id, **found.model_dump(mode="json")}
