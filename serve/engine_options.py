"""Options that say how engines run, for commands that measure: one for each key that an engine may be started with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

__all__ = ["with_engine_options", "with_options_of"]


def _options(
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
    kernels: Annotated[
        str | None, typer.Option(help="auto, native, torch, or step (all of a step in native code, on trial).")
    ] = None,
) -> None:
    """Never called: its signature is what those commands have in common."""


def with_engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options, before its ``--home``; it gets their values as keyword arguments.

    Args:
        command: has a ``home``, and ends with ``**values``.
    """
    return with_options_of(_options, command)


def with_options_of(shared: Callable[..., None], command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of another signature, before its ``--home``; it gets their values as keyword arguments.

    Args:
        shared: has the options; it is never called.
        command: has a ``home``, and ends with ``**values``. It stays as it is, so it may be given options again.

    Returns:
        What calls the command, with the options in its signature.
    """

    @wraps(command)
    def called(*arguments: Any, **values: Any) -> None:
        command(*arguments, **values)

    own = [each for each in _parameters(command) if each.kind is not inspect.Parameter.VAR_KEYWORD]
    place = next(place for place, each in enumerate(own) if each.name == "home")
    parameters = [*own[:place], *_parameters(shared), *own[place:]]
    told: Any = called
    told.__signature__ = inspect.Signature(parameters, return_annotation=None)
    told.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _parameters(command: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())
