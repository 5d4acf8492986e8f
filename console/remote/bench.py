"""`roundhouse --server URL bench …`."""

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

__all__ = ["bench"]

bench = typer.Typer(
    cls=RunUnlessNamed,
    help="Measure speed on a console's machines, list and show what was measured. `bench ENGINE` is `bench run ENGINE`.",
    no_args_is_help=True,
)
_Run = Annotated[str, typer.Argument(metavar="RUN", help="A benchmark run's id, or the start of it.")]


@bench.command(RUN)
def run(
    context: typer.Context,
    subject: SubjectArgument,
    deployment: DeploymentFlag = False,
    concurrency: Annotated[str, typer.Option(help="Requests at once, each of these.")] = "1,8,16,32,64",
    input_tokens: Annotated[int, typer.Option(min=1, help="Of each prompt.")] = 128,
    output_tokens: Annotated[int, typer.Option(min=1, help="Of each answer.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="How often everything is measured.")] = 3,
    prefill: Annotated[str | None, typer.Option(help="Lengths of prompts at which prefill is measured apart: 128,512.")] = None,
    bare: Annotated[bool, typer.Option("--bare", help="The engine loop alone, without a server and without aiperf.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of prompts and lengths. Default: 0; for a server that runs already one that nobody had before."
        ),
    ] = None,
    host: HostOption = None,
    model: ModelOption = None,
    served_by: ServedByOption = None,
    api_key_variable: ApiKeyOption = None,
    follow: FollowOption = False,
    json: JsonOption = False,
) -> None:
    """Have throughput and latency measured by one of the server's workers."""
    client = client_of(context)
    from .measured import BENCHMARKS

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
        "driver": "loop" if bare else "aiperf",
        "workload": {"input_tokens": input_tokens, "output_tokens": output_tokens},
        "concurrencies": _numbers("--concurrency", concurrency),
        "repeats": repeats,
        "prefill_lengths": _numbers("--prefill", prefill) if prefill else [],
        "seed": seed,
    }
    BENCHMARKS.ask(client, wish, follow=follow, json=json)


@bench.command("list")
def list_runs(
    context: typer.Context,
    text: Annotated[str | None, typer.Option(help="Words of a name, model, workload, host, note or tag.")] = None,
    state: Annotated[str | None, typer.Option(help="running, finished, failed, cancelled or interrupted.")] = None,
    tag: Annotated[str | None, typer.Option(help="Those that carry this tag.")] = None,
    sort: Annotated[
        str, typer.Option(help="began, most, alone, prefill, name or model; with - before it the greatest first.")
    ] = "-began",
    page: PageOption = 1,
    size: SizeOption = 50,
    json: JsonOption = False,
) -> None:
    """List benchmark runs, the newest first."""
    from .measured import BENCHMARKS

    query = {"text": text, "state": state, "tag": tag, "sort": sort, "page": page, "size": size}
    BENCHMARKS.list(client_of(context), query, json=json)


@bench.command("show")
def show_run(context: typer.Context, run: _Run, json: JsonOption = False) -> None:
    """Show a run: a row for each concurrency."""
    from .measured import BENCHMARKS

    BENCHMARKS.show(client_of(context), run, json=json)


@bench.command("remove")
def remove_run(context: typer.Context, run: _Run, yes: YesOption = False) -> None:
    """Delete a run with its raw files, in the console and in its home."""
    from .measured import BENCHMARKS

    BENCHMARKS.remove(client_of(context), run, yes=yes)


def _numbers(option: str, text: str) -> list[int]:
    from roundhouse.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} {text!r}: these are no numbers", hint=f"Such as {option} 1,8,32.") from None
