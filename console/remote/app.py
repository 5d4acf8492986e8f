"""The commands for a console on another machine. What they need loads when one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .address import SERVER_VARIABLE
from .bench import bench
from .build import build
from .deployments import deployments
from .drill import drill
from .engines import engines
from .evaluate import evaluate
from .integrity import integrity
from .jobs import jobs
from .plan import plan
from .session import NamedServer
from .workers import workers

__all__ = ["app"]

app = typer.Typer(
    name="roundhouse",
    help="Plan, build, deploy and inspect on the machines of a console elsewhere.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _server(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(metavar="URL", envvar=SERVER_VARIABLE, help="Where the console is, such as https://name.example.")
    ],
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the token, and nothing else. Default: $ROUNDHOUSE_TOKEN.")
    ] = None,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Let the token travel in clear to another machine.")
    ] = False,
) -> None:
    context.obj = NamedServer(server, token_file, insecure_http)


app.command()(plan)
app.command()(build)
app.add_typer(jobs, name="jobs")
app.add_typer(engines, name="engines")
app.add_typer(deployments, name="deployments")
app.command()(drill)
app.add_typer(bench, name="bench")
app.add_typer(evaluate, name="evaluate")
app.command()(integrity)
app.command()(workers)
