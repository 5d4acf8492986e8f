"""`roundhouse demo`: the main job, start to end, with what was measured on the way."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from pydantic import BaseModel, ConfigDict
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from tritonclient.grpc import InferenceServerClient, InferInput

from roundhouse.build.command_options import progress_terminal
from roundhouse.build.engine_view import engine_summary
from roundhouse.build.models.sources import DEMO_MODEL
from roundhouse.build.pipeline import build, plan_recipe
from roundhouse.build.planner.view import plan_view
from roundhouse.build.recipe import Recipe
from roundhouse.build.terminal import answer_console, byte_text
from roundhouse.errors import ServeError

from .deployment import Deployment, Endpoints, Ports
from .openai.chat import load_chat_template
from .openai.schemas import ChatMessage

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine
    from roundhouse.build.home import Home

__all__ = ["DemoReport", "run_demo"]

QUESTION = "What is the capital of France?"
_PARALLEL = 8
_PARALLEL_TOKENS = 32


class DemoReport(BaseModel):
    """What the demo saw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    bytes_before: int
    bytes_after: int
    kv_tokens_bf16: int
    kv_tokens_fp8: int
    top1_agreement: float
    kl: float
    grpc_answer: str
    openai_answer: str
    tokens_per_second_alone: float
    tokens_per_second_parallel: float
    tag_checks: int
    tag_mismatches: int


def run_demo(home: Home, *, quiet: bool) -> DemoReport:
    """Plan, build, serve on Triton, ask through gRPC and the OpenAI front, measure, stop.

    Args:
        home: where the engine is kept; a second demo finds it there.
        quiet: show nothing on standard output.

    Raises:
        RoundhouseError: whatever step failed says so.
    """
    console = Console(quiet=True) if quiet else answer_console()
    recipe = Recipe(model=DEMO_MODEL, name="demo", max_batch_size=16, max_seq_len=2048)

    console.rule("1  plan", align="left")
    plan = plan_recipe(recipe)
    console.print(plan_view(plan))

    console.rule("2  build", align="left")
    with progress_terminal() as terminal:
        engine = build(recipe, home, terminal).engine
    console.print(engine_summary(engine))

    console.rule("3  serve on Triton, page tags on", align="left")
    log: list[str] = []
    with Deployment([engine], home, ports=Ports(http=0, grpc=0, metrics=0, openai=0), on_log=log.append) as deployment:
        endpoints = deployment.endpoints
        console.print(f"ready: Triton gRPC {endpoints.grpc}, HTTP {endpoints.http}, OpenAI {endpoints.openai}")

        console.rule("4  ask", align="left")
        grpc_answer = _show(console, "gRPC   ", _ask_grpc(endpoints, engine))
        openai_answer = _show(console, "OpenAI ", _ask_openai(endpoints))
        alone = _tokens_per_second(endpoints, 1)
        parallel = _tokens_per_second(endpoints, _PARALLEL)
        checks, mismatches = _tag_metrics(endpoints)
    report = DemoReport(
        engine=engine.manifest.id,
        bytes_before=plan.base_bytes,
        bytes_after=plan.checkpoint_bytes,
        kv_tokens_bf16=plan.kv_tokens_bf16,
        kv_tokens_fp8=plan.kv_tokens,
        top1_agreement=engine.manifest.quality.top1_agreement,
        kl=engine.manifest.quality.kl,
        grpc_answer=grpc_answer,
        openai_answer=openai_answer,
        tokens_per_second_alone=alone,
        tokens_per_second_parallel=parallel,
        tag_checks=checks,
        tag_mismatches=mismatches,
    )
    console.rule("5  what was measured", align="left")
    console.print(_report_table(report))
    console.print(f"The engine stays; serve it with: roundhouse serve {engine.manifest.name}", markup=False)
    return report


def _show(console: Console, name: str, pieces: Iterator[str]) -> str:
    """Print an answer as it comes, and return it whole."""
    console.print(f"{name} Q: {QUESTION}", markup=False)
    console.print(f"{name} A: ", end="", markup=False)
    text = ""
    for piece in pieces:
        console.print(piece, end="", markup=False, soft_wrap=True)
        text += piece
    console.print()
    if not text.strip():
        raise ServeError(f"the {name.strip()} endpoint gave an empty answer")
    return text


def _ask_grpc(endpoints: Endpoints, engine: Engine) -> Iterator[str]:
    """The question through Triton's gRPC, as TensorRT-LLM's clients would send it; yields pieces of text."""
    template = load_chat_template(engine.checkpoint, chat=engine.manifest.chat)
    ids = np.array(template.prompt_ids([ChatMessage(role="user", content=QUESTION)]), dtype=np.int32)
    inputs = [
        _input("input_ids", ids, "INT32"),
        _input("streaming", np.array([True]), "BOOL"),
        _input("sampling_param_max_tokens", np.array([64], dtype=np.int32), "INT32"),
    ]
    answers: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
    with InferenceServerClient(endpoints.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer(endpoints.model, inputs)
        while True:
            result, error = answers.get(timeout=120)
            if error is not None:
                raise ServeError(f"Triton answered with an error: {error}")
            yield result.as_numpy("text_output")[0].decode()
            if result.as_numpy("finish_reason") is not None:
                return


def _input(name: str, values: np.ndarray[Any, Any], triton_type: str) -> InferInput:
    tensor = InferInput(name, list(values.shape), triton_type)
    tensor.set_data_from_numpy(values)
    return tensor


def _ask_openai(endpoints: Endpoints) -> Iterator[str]:
    """The question through the OpenAI front, streamed; yields pieces of text."""
    messages = [{"role": "user", "content": QUESTION}]
    body = {"model": endpoints.model, "messages": messages, "max_tokens": 64, "temperature": 0, "stream": True}
    with httpx.stream("POST", f"{endpoints.openai}/chat/completions", json=body, timeout=120) as response:
        if response.status_code != httpx.codes.OK:
            raise ServeError(f"the OpenAI front answered {response.status_code}: {response.read().decode()}")
        for line in response.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    yield choice["delta"].get("content") or ""


def _tokens_per_second(endpoints: Endpoints, streams: int) -> float:
    """Generated tokens a second over ``streams`` requests at once, prompts included; tokens as the server counts them."""
    body = {"model": endpoints.model, "prompt": "Once upon a time there was", "max_tokens": _PARALLEL_TOKENS, "temperature": 0}

    def one(_: int) -> int:
        response = httpx.post(f"{endpoints.openai}/completions", json=body, timeout=300).raise_for_status()
        tokens: int = response.json()["usage"]["completion_tokens"]
        return tokens

    start = time.monotonic()
    with ThreadPoolExecutor(streams) as pool:
        total = sum(pool.map(one, range(streams)))
    return total / (time.monotonic() - start)


def _tag_metrics(endpoints: Endpoints) -> tuple[int, int]:
    """(checks, mismatches) from Triton's metrics, once the last report of the engine process has arrived."""
    time.sleep(1.5)
    text = httpx.get(endpoints.metrics, timeout=10).text

    def value(name: str) -> int:
        found = re.search(rf"^{name}{{.*}} (\S+)$", text, re.MULTILINE)
        if found is None:
            raise ServeError(f"{endpoints.metrics} does not show {name}")
        return int(float(found[1]))

    return value("roundhouse_tag_checks_total"), value("roundhouse_tag_mismatches_total")


def _report_table(report: DemoReport) -> Table:
    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    change = f"{byte_text(report.bytes_before)} → {byte_text(report.bytes_after)}"
    rows = [
        ("weights, before → after", change),
        ("KV tokens in the same bytes, BF16 → FP8", f"{report.kv_tokens_bf16:,} → {report.kv_tokens_fp8:,}"),
        ("next tokens that agree with the base", f"{report.top1_agreement:.1%} (KL {report.kl:.3f})"),
        ("tokens/s through the OpenAI front, alone", f"{report.tokens_per_second_alone:.1f}"),
        (f"tokens/s through the OpenAI front, {_PARALLEL} at once", f"{report.tokens_per_second_parallel:.1f}"),
        ("page-tag checks", f"{report.tag_checks:,}"),
        ("page-tag mismatches", f"{report.tag_mismatches:,}"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table
