"""Options that say what is asked, of whom, and how engines run: `bench run` and `bench compare --interleaved` share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from ..engine_options import with_engine_options, with_options_of

__all__ = ["with_load_options"]


def _options(
    concurrency: Annotated[str | None, typer.Option(help="Requests at once, each of these. Default: 1,8,16,32,64.")] = None,
    input_tokens: Annotated[int | None, typer.Option(help="Of each prompt. Default: 128.")] = None,
    output_tokens: Annotated[int | None, typer.Option(help="Of each answer. Default: 64.")] = None,
    workload: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="A shipped workload, or a file.")] = None,
    requests_each: Annotated[
        int | None, typer.Option(min=1, help="Requests of a point, as a multiple of its concurrency. Default: 4.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=100, help="How often everything is measured. Default: 3.")] = None,
    prefill: Annotated[str | None, typer.Option(help="Lengths of prompts at which prefill is measured apart: 128,512.")] = None,
    bare: Annotated[bool, typer.Option("--bare", help="The engine loop alone, without a server and without aiperf.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of prompts and lengths. Default: 0; for a URL one that nobody had before.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request has failed.")] = 600.0,
    model: Annotated[str | None, typer.Option(help="The model's name at an endpoint that has several.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Folder of the endpoint's tokenizer: prompts are exactly as long as asked.")
    ] = None,
    metrics: Annotated[str | None, typer.Option(help="URL of Triton's metrics, for a server of ours.")] = None,
    api_key_variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable with the endpoint's key.")
    ] = None,
    server: Annotated[str | None, typer.Option(help="What serves the endpoint, in words, for the history.")] = None,
) -> None:
    """Never called: its signature is what both commands have in common."""


def with_load_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, and those of how engines run, before its ``--home``; it gets their values as ``**load``.

    Args:
        command: has a ``home``, and ends with ``**load``.
    """
    return with_engine_options(with_options_of(_options, command))
