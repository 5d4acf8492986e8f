"""Options that say what is asked, of whom, and how engines run: `bench run` and `bench compare --interleaved` share them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

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
    guard: Annotated[str | None, typer.Option(help="Page check: off, tags or tags+content. Default: the recipe's.")] = None,
    guard_sample: Annotated[float | None, typer.Option(help="With tags+content: share of full pages checked.")] = None,
    max_batch_size: Annotated[int | None, typer.Option(help="Requests that run at once.")] = None,
    max_seq_len: Annotated[int | None, typer.Option(help="Longest request in tokens, prompt and answer.")] = None,
    max_num_tokens: Annotated[int | None, typer.Option(help="Tokens of one step.")] = None,
    page_tokens: Annotated[int | None, typer.Option(help="Tokens in a KV page.")] = None,
    kv_cache_tokens: Annotated[int | None, typer.Option(help="KV cache size in tokens.")] = None,
    kv_cache_bytes: Annotated[int | None, typer.Option(help="KV cache size in bytes.")] = None,
    memory_fraction: Annotated[float | None, typer.Option(help="Share of free memory for weights and KV cache.")] = None,
    prefix_reuse: Annotated[
        bool | None, typer.Option("--prefix-reuse/--no-prefix-reuse", help="Keep full pages for prompts that begin alike.")
    ] = None,
    max_waiting: Annotated[int | None, typer.Option(help="Answers that may wait in line.")] = None,
    kernels: Annotated[str | None, typer.Option(help="auto, native or torch.")] = None,
) -> None:
    """Never called: its signature is what both commands have in common."""


def with_load_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, before its ``--home``; it gets their values as ``**load``.

    Args:
        command: has a ``home``, and ends with ``**load``.
    """
    own = [each for each in _parameters(command) if each.kind is not inspect.Parameter.VAR_KEYWORD]
    place = next(place for place, each in enumerate(own) if each.name == "home")
    parameters = [*own[:place], *_parameters(_options), *own[place:]]
    told: Any = command
    told.__signature__ = inspect.Signature(parameters, return_annotation=None)
    told.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _parameters(command: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())
