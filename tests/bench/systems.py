"""The systems that are compared: each serves a batch of prompts, all at once, to the same number of greedy tokens."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self

from cells import DecodeWindow, Run
from spread import IN_PROCESS, TRITON

from roundhouse.errors import ServeError
from roundhouse.serve.addresses import Endpoints
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Chunk, Failure, Output, Request, SamplingParams
from roundhouse.serve.openai.triton_client import GenerationOptions, TritonClient

__all__ = ["InProcess", "System", "ThroughTriton", "Transformers", "chunks_of", "complete", "greedy_requests"]

_CHILD = Path(__file__).with_name("transformers_child.py")
_WITHOUT_END = 2**31 - 1
_PATIENCE_S = 10.0


class System(Protocol):
    """One way to get tokens."""

    name: str

    def run(self, prompts: Sequence[list[int]], new_tokens: int) -> Run:
        """Answer all prompts at once, each with so many tokens.

        Raises:
            ServeError: it could not, or gave another number of tokens.
        """
        ...


class InProcess:
    """The engine loop, driven in this process as its own process would.

    Args:
        loop: idle.
    """

    name = IN_PROCESS

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop

    def run(self, prompts: Sequence[list[int]], new_tokens: int) -> Run:
        window, tokens = DecodeWindow(len(prompts)), 0
        began = time.perf_counter()
        for request in greedy_requests(prompts, new_tokens):
            self._loop.submit(request)
        while self._loop.has_work:
            chunks = chunks_of(self._loop.step())
            window.note(chunks, time.perf_counter())
            tokens += sum(len(chunk.token_ids) for chunk in chunks)
        seconds = time.perf_counter() - began
        return Run(complete(tokens, prompts, new_tokens), seconds, window.tokens_per_s)


class ThroughTriton:
    """A deployment, asked by one client with a gRPC stream for each prompt.

    Args:
        at: where it answers.
    """

    name = TRITON

    def __init__(self, at: Endpoints) -> None:
        self._at = at

    def run(self, prompts: Sequence[list[int]], new_tokens: int) -> Run:
        return asyncio.run(self._run(prompts, new_tokens))

    async def _run(self, prompts: Sequence[list[int]], new_tokens: int) -> Run:
        client = TritonClient(self._at.grpc, self._at.model, self._at.metrics)
        try:
            if problem := await client.problem():  # connects, too
                raise ServeError(f"Triton is not ready: {problem}")
            began = time.perf_counter()
            counts = await asyncio.gather(*(_ask(client, prompt, new_tokens) for prompt in prompts))
            seconds = time.perf_counter() - began
        finally:
            await client.close()
        return Run(complete(sum(counts), prompts, new_tokens), seconds)


class Transformers:
    """``transformers.generate`` on the engine's weights, in a process of its own.

    As its users run it: with the environment of whoever started the bench, and so with threads as its libraries have them.

    Args:
        name: what to call it.
        checkpoint: the engine's.
        dtype: what it computes in, as torch calls it.
        environment: of its process.
    """

    def __init__(self, name: str, checkpoint: Path, dtype: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, _CHILD, checkpoint, dtype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.about: dict[str, Any] = {}
        """Its attention and its threads, once it is ready."""

    def __enter__(self) -> Self:
        self.about = self._answer()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def run(self, prompts: Sequence[list[int]], new_tokens: int) -> Run:
        stdin = self._process.stdin
        if stdin is None:
            raise ServeError(f"{self.name} has no input")
        with suppress(BrokenPipeError):  # it has ended: the missing answer says so
            stdin.write(json.dumps({"prompts": prompts, "new_tokens": new_tokens}) + "\n")
            stdin.flush()
        answer = self._answer()
        return Run(complete(answer["output_tokens"], prompts, new_tokens), answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise ServeError(f"{self.name} ended with exit code {self._process.wait(_PATIENCE_S)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def greedy_requests(prompts: Sequence[list[int]], new_tokens: int | None) -> list[Request]:
    """A request for each prompt that goes on past end-of-sequence tokens; None lets it go on as long as it may."""
    sampling = SamplingParams(max_tokens=_WITHOUT_END if new_tokens is None else new_tokens, ignore_eos=True)
    return [Request(request_id=str(number), prompt_ids=ids, sampling=sampling) for number, ids in enumerate(prompts)]


def chunks_of(outputs: Iterable[Output]) -> list[Chunk]:
    """Outputs among which no failure may be.

    Raises:
        ServeError: there is one.
    """
    chunks = []
    for output in outputs:
        if isinstance(output, Failure):
            raise ServeError(f"the engine failed a request: {output.message}")
        chunks.append(output)
    return chunks


def complete(tokens: int, prompts: Sequence[list[int]], new_tokens: int) -> int:
    """The tokens that came out, if these are all that were asked for.

    Raises:
        ServeError: they are not: an answer that was cut is no measurement.
    """
    asked = len(prompts) * new_tokens
    if tokens != asked:
        raise ServeError(
            f"{tokens} tokens came out instead of {asked}", hint="Take fewer, so that they fit the model's length."
        )
    return tokens


async def _ask(client: TritonClient, prompt: list[int], new_tokens: int) -> int:
    options = GenerationOptions(SamplingParams(max_tokens=new_tokens, ignore_eos=True))
    return sum([len(piece.token_ids) async for piece in client.generate(prompt, options, streaming=True)])
