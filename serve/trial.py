"""A first try of a deployment: one question through each endpoint, how fast it answers, and whether pages were checked."""

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
from rich.console import Console
from tritonclient.grpc import InferenceServerClient, InferInput

from roundhouse.errors import ServeError

from .addresses import Endpoints
from .openai.chat import load_chat_template
from .openai.schemas import ChatMessage

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["PARALLEL", "Trial", "try_out"]

QUESTION = "What is the capital of France?"
PARALLEL = 8
"""Requests at once where speed is measured under load."""
_PARALLEL_TOKENS = 32


class Trial(BaseModel):
    """What a first try saw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grpc_answer: str
    openai_answer: str
    tokens_per_second_alone: float
    tokens_per_second_parallel: float
    tag_checks: int
    tag_mismatches: int


def try_out(endpoints: Endpoints, engine: Engine, console: Console) -> Trial:
    """Ask and measure, showing answers as they come.

    Raises:
        ServeError: an endpoint answered with an error, or with nothing.
    """
    grpc_answer = _show(console, "gRPC   ", _ask_grpc(endpoints, engine))
    openai_answer = _show(console, "OpenAI ", _ask_openai(endpoints))
    alone, parallel = _tokens_per_second(endpoints, 1), _tokens_per_second(endpoints, PARALLEL)
    checks, mismatches = _tag_metrics(endpoints)
    return Trial(
        grpc_answer=grpc_answer,
        openai_answer=openai_answer,
        tokens_per_second_alone=alone,
        tokens_per_second_parallel=parallel,
        tag_checks=checks,
        tag_mismatches=mismatches,
    )


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
