"""`roundhouse --server URL evaluate …`."""

from __future__ import annotations

from typing import Annotated

import typer

from roundhouse.build.command_options import JsonOption

from .measuring import (
    RUN,
    ApiKeyOption,
    DeploymentFlag,
    HostOption,
    ModelOption,
    RunUnlessNamed,
    ServedByOption,
    SubjectArgument,
    subject_of,
)
from .options import FollowOption, PageOption, SizeOption, YesOption
from .session import client_of

__all__ = ["evaluate"]

evaluate = typer.Typer(
    cls=RunUnlessNamed,
    help="Measure accuracy on a console's machines, list and show what came of it. `evaluate ENGINE` is `evaluate run ENGINE`.",
    no_args_is_help=True,
)
_Evaluation = Annotated[str, typer.Argument(metavar="EVALUATION", help="An evaluation's id, or the start of it.")]


@evaluate.command(RUN)
def run(
    context: typer.Context,
    subject: SubjectArgument,
    deployment: DeploymentFlag = False,
    tasks: Annotated[str | None, typer.Option(help="Tasks, with commas between them. Default: all shipped suites.")] = None,
    against: Annotated[str | None, typer.Option(metavar="ENGINE", help="The base that it is compared with.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Items of each task at most.")] = None,
    gate_points: Annotated[float, typer.Option(min=0, help="Points of 100 that a task may be down.")] = 0.8,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    host: HostOption = None,
    model: ModelOption = None,
    served_by: ServedByOption = None,
    api_key_variable: ApiKeyOption = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Have accuracy measured by one of the server's workers, and compared with a base."""
    client = client_of(context)
    from .finding import find_engine
    from .measured import EVALUATIONS

    wish = subject_of(
        client,
        subject,
        deployment=deployment,
        host=host,
        model=model,
        served_by=served_by,
        api_key_variable=api_key_variable,
    )
    wish |= {
        "tasks": [name.strip() for name in tasks.split(",")] if tasks else [],
        "against_engine_id": find_engine(client, against).id if against is not None else None,
        "limit": limit,
        "gate_points": gate_points,
        "seed": seed,
    }
    EVALUATIONS.ask(client, wish, follow=follow, json=json)


@evaluate.command("list")
def list_all(
    context: typer.Context,
    text: Annotated[str | None, typer.Option(help="Words of a name, model, base, task or host.")] = None,
    state: Annotated[str | None, typer.Option(help="running, finished, failed, cancelled or interrupted.")] = None,
    gate: Annotated[str | None, typer.Option(help="passed, failed or 'not measured'.")] = None,
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List evaluations, the newest first."""
    from .measured import EVALUATIONS

    query = {"text": text, "state": state, "gate": gate, "page": page, "size": size}
    EVALUATIONS.list(client_of(context), query, json=json)


@evaluate.command("show")
def show_one(context: typer.Context, evaluation: _Evaluation, json: JsonOption = False) -> None:
    """Show an evaluation: a row for each task, and the gate."""
    from .measured import EVALUATIONS

    EVALUATIONS.show(client_of(context), evaluation, json=json)


@evaluate.command("remove")
def remove_one(context: typer.Context, evaluation: _Evaluation, yes: YesOption = False) -> None:
    """Delete an evaluation with its items, in the console and in its home."""
    from .measured import EVALUATIONS

    EVALUATIONS.remove(client_of(context), evaluation, yes=yes)
