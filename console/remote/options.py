"""Options that several commands for a server have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["EngineArgument", "FollowOption", "JobArgument", "PageOption", "SizeOption", "YesOption"]

FollowOption = Annotated[
    bool, typer.Option("--follow", help="Show stages and log until it ends. Ctrl-C ends the showing, not the work.")
]
PageOption = Annotated[int, typer.Option("--page", min=1, help="Which part of the list, from 1.")]
SizeOption = Annotated[int, typer.Option("--size", min=1, max=200, help="How many to a page.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
JobArgument = Annotated[int, typer.Argument(metavar="JOB", min=1, help="A job's number.")]
EngineArgument = Annotated[str, typer.Argument(metavar="ENGINE", help="An engine's id, the start of it, or its name.")]
