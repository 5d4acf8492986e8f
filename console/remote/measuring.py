"""What `bench` and `evaluate` have in common: how somebody names what is measured, and a group that runs unless told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundhouse.errors import UsageError
from roundhouse.serve.default_command import group_with_default

if TYPE_CHECKING:
    from .client import Client

__all__ = [
    "RUN",
    "ApiKeyOption",
    "DeploymentFlag",
    "HostOption",
    "ModelOption",
    "RunUnlessNamed",
    "ServedByOption",
    "SubjectArgument",
    "subject_of",
]

RUN = "run"

SubjectArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENGINE|URL", help="An engine of the server's, by id or name, or the URL of an OpenAI-compatible endpoint."
    ),
]
DeploymentFlag = Annotated[bool, typer.Option("--deployment", help="What is named is a deployment, measured as it is served.")]
HostOption = Annotated[str | None, typer.Option(help="Measure from this host. Default: one that can.")]
ModelOption = Annotated[str | None, typer.Option(help="The model's name at an endpoint that has several.")]
ServedByOption = Annotated[str | None, typer.Option("--served-by", help="What serves an endpoint, in words, for the history.")]
ApiKeyOption = Annotated[
    str | None, typer.Option("--api-key-variable", metavar="NAME", help="Environment variable, here, with the endpoint's key.")
]


RunUnlessNamed = group_with_default(RUN)
"""``bench demo`` is ``bench run demo``."""


def subject_of(
    client: Client,
    subject: str,
    *,
    deployment: bool,
    host: str | None,
    model: str | None,
    served_by: str | None,
    api_key_variable: str | None,
) -> dict[str, Any]:
    """What the API is told of what is measured.

    Raises:
        NotFoundError: nothing is called like that.
        UsageError: several are, or the variable is not set.
    """
    from .finding import find_deployment, find_engine

    if deployment:
        named = {"deployment_id": find_deployment(client, subject).id}
    elif subject.startswith(("http://", "https://")):
        named = {"url": subject}
    else:
        named = {"engine_id": find_engine(client, subject).id}
    key = os.environ.get(api_key_variable) if api_key_variable else None
    if api_key_variable and not key:
        raise UsageError(f"the environment variable {api_key_variable} is not set", hint="It holds the endpoint's key.")
    told = {**named, "host": host, "model": model, "server": served_by, "api_key": key}
    return {name: value for name, value in told.items() if value is not None}
