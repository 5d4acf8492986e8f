"""`roundhouse serve`, `generate`, `drill`, `bench …`, `evaluate …`, `export …` and `doctor`."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from roundhouse.build.command_options import HomeOption, JsonOption, home_at, print_json
from roundhouse.build.commands import EngineArgument
from roundhouse.build.extras import require_extra
from roundhouse.build.terminal import answer_console

from .accuracy.commands import add_evaluate_commands
from .benchmark.commands import add_bench_commands
from .drill.command import drill
from .export.commands import export_commands

__all__ = ["add_commands"]

_Engines = Annotated[list[str], typer.Argument(metavar="ENGINE...", help="Ids of engines, starts of them, names, or folders.")]
_Host = Annotated[
    str, typer.Option(help="Address to listen on. API keys guard only the front, nothing guards Triton's ports: keep it local.")
]
_Guard = Annotated[str | None, typer.Option(help="Page check: off, tags or tags+content. Default: the recipe's.")]
_GuardSample = Annotated[
    float | None, typer.Option(help="With tags+content: share of full pages whose content is checked before a step, up to 1.")
]
_Batch = Annotated[int | None, typer.Option(help="Requests that run at once.")]
_Seq = Annotated[int | None, typer.Option(help="Longest request in tokens, prompt and answer.")]
_KvTokens = Annotated[int | None, typer.Option(help="KV cache size in tokens.")]
_KvBytes = Annotated[int | None, typer.Option(help="KV cache size in bytes.")]
_ToolForm = Annotated[
    str | None, typer.Option(help="How models write tool calls: hermes, llama3, kimi or glm. Default: as their template says.")
]
_Fraction = Annotated[float | None, typer.Option(help="Share of free memory for weights and KV cache.")]


def add_commands(app: typer.Typer) -> None:
    """Mount this room's commands."""
    app.command()(serve)
    app.command()(generate)
    add_evaluate_commands(app)
    app.command()(drill)
    add_bench_commands(app)
    app.add_typer(export_commands(), name="export")
    app.command()(doctor)


def generate(
    engine: EngineArgument,
    prompt: Annotated[str, typer.Argument(help="What to answer, or to continue with --raw.")],
    max_tokens: Annotated[int, typer.Option(help="Most tokens to generate.")] = 128,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option()] = 1.0,
    top_k: Annotated[int, typer.Option(help="0 keeps every token.")] = 0,
    seed: Annotated[int | None, typer.Option()] = None,
    stop: Annotated[list[str] | None, typer.Option(help="End before this text; may be repeated.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the prompt as it is, without the chat template.")] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Run in float32: slow, the oracle of the fast path.")] = False,
    guard: _Guard = None,
    guard_sample: _GuardSample = None,
    max_seq_len: _Seq = None,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Run an engine in this process, without a server, and stream its answer."""
    from roundhouse.build.store import EngineStore

    require_extra("serve")
    from .engine.request import SamplingParams
    from .generate import generate as run
    from .settings import overrides_of

    found = EngineStore(home_at(home)).find(engine)
    sampling = SamplingParams(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k, seed=seed, stop=tuple(stop or ())
    )
    overrides = overrides_of(guard=guard, guard_sample=guard_sample, max_seq_len=max_seq_len, max_batch_size=1)
    answer = run(
        found,
        prompt,
        sampling,
        overrides=overrides,
        chat=not raw,
        reference=reference,
        on_text=_ignore if json else _show_piece,
    )
    if json:
        print_json(answer.as_dict())
        return
    typer.echo("")
    summary = f"{answer.completion_tokens} tokens, {answer.tokens_per_second:.1f} tokens/s, ended by {answer.finish_reason}"
    typer.echo(f"[{summary}; {answer.tag_checks} tag checks]", err=True)


def serve(
    engines: _Engines,
    http: Annotated[int, typer.Option(help="Triton HTTP port; 0 takes a free one.")] = 8000,
    grpc: Annotated[int, typer.Option(help="Triton gRPC port; 0 takes a free one.")] = 8001,
    metrics: Annotated[int, typer.Option(help="Triton metrics port; 0 takes a free one.")] = 8002,
    openai: Annotated[int, typer.Option(help="Port of the OpenAI-compatible front; 0 takes a free one.")] = 9000,
    host: _Host = "127.0.0.1",
    guard: _Guard = None,
    guard_sample: _GuardSample = None,
    max_batch_size: _Batch = None,
    max_seq_len: _Seq = None,
    max_num_tokens: Annotated[int | None, typer.Option(help="Tokens of one step; longer prompts are cut into chunks.")] = None,
    page_tokens: Annotated[int | None, typer.Option(help="Tokens in a KV page.")] = None,
    kv_cache_tokens: _KvTokens = None,
    kv_cache_bytes: _KvBytes = None,
    memory_fraction: _Fraction = None,
    prefix_reuse: Annotated[
        bool, typer.Option("--prefix-reuse/--no-prefix-reuse", help="Keep full pages for prompts that begin alike.")
    ] = True,
    max_waiting: Annotated[int | None, typer.Option(help="Answers that may wait in line; more are refused (429).")] = None,
    tool_form: _ToolForm = None,
    model_control: Annotated[
        bool, typer.Option("--model-control", help="Let holders of a key, which is shown, unload and load engines.")
    ] = False,
    home: HomeOption = None,
    json: JsonOption = False,
) -> None:
    """Serve engines on a real Triton server, with an OpenAI-compatible front, until Ctrl-C.

    Several engines run side by side, each in a process of its own; options hold for each of them. Standard output
    says where they answer, once everything is ready; Triton's log goes to standard error.
    """
    from roundhouse.build.store import EngineStore

    require_extra("serve")
    from .deployment import Deployment, Ports, run_deployment
    from .endpoints_view import endpoints_json, endpoints_text
    from .openai.api_keys import ApiKeys
    from .settings import overrides_of

    place = home_at(home)
    overrides = overrides_of(
        guard=guard,
        guard_sample=guard_sample,
        max_batch_size=max_batch_size,
        max_seq_len=max_seq_len,
        max_num_tokens=max_num_tokens,
        page_tokens=page_tokens,
        kv_cache_tokens=kv_cache_tokens,
        kv_cache_bytes=kv_cache_bytes,
        memory_fraction=memory_fraction,
        prefix_reuse=prefix_reuse,
        max_waiting=max_waiting,
    )
    store = EngineStore(place)
    api_keys = ApiKeys.from_environment(os.environ)
    deployment = Deployment(
        [store.find(engine) for engine in engines],
        place,
        ports=Ports(host=host, http=http, grpc=grpc, metrics=metrics, openai=openai),
        overrides=overrides,
        api_keys=api_keys,
        tool_form=tool_form,
        control=model_control,
        on_log=lambda line: typer.echo(line, err=True),
    )
    show = endpoints_json if json else partial(endpoints_text, keyed=api_keys is not None)
    run_deployment(deployment, on_ready=lambda endpoints: typer.echo(show(endpoints)))


def doctor(home: HomeOption = None, json: JsonOption = False) -> None:
    """Say what this machine can do, and why not. Exit code 1 when the torch target cannot build or serve."""
    from .doctor import diagnose, doctor_table

    findings = diagnose(home_at(home))
    if json:
        print_json({"findings": [finding.model_dump(mode="json") for finding in findings]})
    else:
        answer_console().print(doctor_table(findings))
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(1)


def _ignore(text: str) -> None:
    pass


def _show_piece(text: str) -> None:
    typer.echo(text, nl=False)
