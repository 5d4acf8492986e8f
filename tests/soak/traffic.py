"""Clients of every kind, at random: some go to the end, some leave, some cancel, some ask for what cannot be."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
from tritonclient.grpc.aio import InferenceServerClient

from roundhouse.serve.addresses import Endpoints
from roundhouse.serve.engine.request import Guide, SamplingParams
from roundhouse.serve.openai.errors import ApiError
from roundhouse.serve.openai.triton_client import GenerationOptions, TritonClient
from roundhouse.serve.triton.encode import encode_inputs

__all__ = ["Traffic"]

_TEXT = "the engine stood in the roundhouse while rain fell on the yard and a train passed far away"
_WORDS = tuple(_TEXT.split())
_REFUSED_WELL = {"unavailable", "overloaded", "rate_limit_exceeded", "deadline", "timeout", "cancelled"}
"""How a request may end that asked for nothing wrong."""
_PATIENCE_S = 0.5
"""What a client waits before it asks again, after it was told that its model is not there."""
_BAD: tuple[dict[str, Any], ...] = (
    {"max_tokens": -1},
    {"temperature": -1},
    {"stop": ""},
    {"n": 0},
    {"prompt": ""},
    {"prompt": "word " * 5000},
    {"prompt": [10**9]},
    {"top_p": 7},
    {"max_tokns": 3},
)


class Traffic:
    """Random requests to the models of one deployment, until told to stop.

    Args:
        at: where it answers.
        always_there: models that are never away; their clients are never told so.
        longest: most tokens that a request asks for.
        seed: of the random choices.
    """

    def __init__(self, at: Endpoints, *, always_there: set[str], longest: int, seed: int) -> None:
        self._at = at
        self._always_there = always_there
        self._longest = longest
        self._random = random.Random(seed)
        self._stop = asyncio.Event()
        self.counts: Counter[str] = Counter()
        self.kinds: set[str] = set()
        self.faults: list[str] = []
        """What should not have happened."""

    def never_seen(self) -> list[str]:
        """Kinds of requests that a model which was always there never served as they should be."""
        wanted = {
            name: "left" if name.endswith("left") else "refused" if name.endswith("wrong") else "done" for name in self.kinds
        }
        wanted["triton grpc, late"] = "timeout"
        each = [f"{model}, {name}: {outcome}" for model in sorted(self._always_there) for name, outcome in wanted.items()]
        return [what for what in each if not self.counts[what]]

    def stop(self) -> None:
        """Let every client end what it does."""
        self._stop.set()

    async def run(self, clients: int) -> None:
        """Run so many clients at once until :meth:`stop`."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
        async with httpx.AsyncClient(trust_env=False, timeout=300, limits=limits) as http:
            tritons = {model: TritonClient(self._at.grpc, model, self._at.metrics) for model in self._at.models}
            grpc = InferenceServerClient(self._at.grpc)
            try:
                await asyncio.gather(*(self._client(http, grpc, tritons) for _ in range(clients)))
            finally:
                await grpc.close()
                for triton in tritons.values():
                    await triton.close()

    async def _client(self, http: httpx.AsyncClient, grpc: InferenceServerClient, tritons: dict[str, TritonClient]) -> None:
        while not self._stop.is_set():
            model = self._random.choice(self._at.models)
            kinds = {
                "openai, whole": (4, lambda model=model: self._openai_whole(http, model)),
                "openai, streamed": (4, lambda model=model: self._openai_stream(http, model, leave=False)),
                "openai, chat": (2, lambda model=model: self._openai_chat(http, model)),
                "openai, left": (2, lambda model=model: self._openai_stream(http, model, leave=True)),
                "openai, wrong": (2, lambda model=model: self._openai_wrong(http, model)),
                "triton http": (3, lambda model=model: self._triton_http(http, model)),
                "triton grpc": (4, lambda model=model: self._grpc(tritons[model], leave=False)),
                "triton grpc, left": (2, lambda model=model: self._grpc(tritons[model], leave=True)),
                "triton grpc, stopped": (2, lambda model=model: self._grpc_stopped(http, grpc, model)),
                "triton grpc, late": (1, lambda model=model: self._grpc(tritons[model], leave=False, deadline_s=0.05)),
            }
            name = self._random.choices(list(kinds), [weight for weight, _ in kinds.values()])[0]
            self.kinds.update(kinds)
            try:
                outcome = await kinds[name][1]()
            except ApiError as error:
                outcome = self._refused(error.code, f"{error.status}: {error.message}", name)
            except httpx.HTTPError as error:
                outcome = "fault"
                self.faults.append(f"{name}: {error!r}")
            if outcome == "unavailable" and model in self._always_there:
                self.faults.append(f"{name}: {model} was said to be away")
            self.counts[f"{model}, {name}: {outcome}"] += 1
            if outcome == "unavailable":
                await asyncio.sleep(_PATIENCE_S)

    async def _openai_whole(self, http: httpx.AsyncClient, model: str) -> str:
        body = self._body(model, n=self._random.choice([1, 1, 3]))
        return self._told(await http.post(f"{self._at.openai}/completions", json=body), "openai, whole")

    async def _openai_chat(self, http: httpx.AsyncClient, model: str) -> str:
        body = {"model": model, "messages": [{"role": "user", "content": self._prompt()}], "max_tokens": self._longest}
        body |= self._random.choice([{}, {"response_format": {"type": "json_object"}}])
        return self._told(await http.post(f"{self._at.openai}/chat/completions", json=body), "openai, chat")

    async def _openai_stream(self, http: httpx.AsyncClient, model: str, *, leave: bool) -> str:
        events = self._random.randrange(1, 6) if leave else self._longest * 10
        last = ""
        async with http.stream("POST", f"{self._at.openai}/completions", json=self._body(model, stream=True)) as response:
            async for line in response.aiter_lines():
                last = line.removeprefix("data: ") or last
                events -= line != ""
                if events <= 0:
                    return "left"
        if last == "[DONE]":
            return "done"
        error = json.loads(last)["error"]
        return self._refused(error["code"], error["message"], "openai, streamed")

    async def _openai_wrong(self, http: httpx.AsyncClient, model: str) -> str:
        body = self._body(model) | self._random.choice(_BAD)
        response = await http.post(f"{self._at.openai}/completions", json=body)
        if response.status_code == httpx.codes.BAD_REQUEST:
            return "refused"
        return self._told(response, "openai, wrong", ok=False)

    async def _triton_http(self, http: httpx.AsyncClient, model: str) -> str:
        body = {"text_input": self._prompt(), "max_tokens": self._max_tokens(), "stop_words": ["ing"]}
        response = await http.post(f"{self._at.http}/v2/models/{model}/generate", json=body)
        if response.status_code == httpx.codes.OK:
            return "done"
        message = response.json()["error"]
        code = "unavailable" if "unknown model" in message else message.removeprefix("[").partition("]")[0]
        return self._refused(code, message, "triton http")

    async def _grpc(self, triton: TritonClient, *, leave: bool, deadline_s: float | None = None) -> str:
        pieces = self._random.randrange(1, 6) if leave else self._longest * 10
        options = GenerationOptions(
            self._sampling(),
            cache_salt=self._random.choice(["", "a"]),
            priority=self._random.choice([0, 0, 1]),
            deadline_s=deadline_s,
        )
        streaming = leave or self._random.random() < 0.7
        async with aclosing(triton.generate(self._prompt(), options, streaming=streaming)) as stream:
            async for _ in stream:
                pieces -= 1
                if pieces <= 0:
                    return "left"
        return "done"

    async def _grpc_stopped(self, http: httpx.AsyncClient, grpc: InferenceServerClient, model: str) -> str:
        mine = uuid.uuid4().hex
        values = {"text_input": self._prompt(), "streaming": True, "max_tokens": self._longest, "sampling_param_n": 2}

        async def one() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": model, "inputs": encode_inputs(values), "request_id": mine}

        first = True
        async for _, error in grpc.stream_infer(one()):
            if error is not None:
                unknown = "unknown model" in error.message()
                code = "unavailable" if unknown else error.message().removeprefix("[").partition("]")[0]
                return self._refused(code, error.message(), "triton grpc, stopped")
            if first:
                await http.post(f"{self._at.http}/v2/models/{model}/generate", json={"id": mine, "stop": True})
            first = False
        return "done"

    def _told(self, response: httpx.Response, name: str, *, ok: bool = True) -> str:
        if ok and response.status_code == httpx.codes.OK:
            return "done"
        error = response.json().get("error", {})
        return self._refused(error.get("code", "nothing"), f"{response.status_code}: {error.get('message')}", name)

    def _refused(self, code: str, message: str, name: str) -> str:
        if code not in _REFUSED_WELL:
            self.faults.append(f"{name}: {code}: {message}")
        return code

    def _body(self, model: str, **changes: Any) -> dict[str, Any]:
        return {"model": model, "prompt": self._prompt(), "max_tokens": self._max_tokens(), **changes}

    def _prompt(self) -> str:
        """Few beginnings and many lengths, so that some share pages."""
        return " ".join(_WORDS[: self._random.randrange(1, len(_WORDS))] * self._random.choice([1, 1, 2, 4]))

    def _max_tokens(self) -> int:
        return min(self._longest, int(self._random.expovariate(1 / 30)))

    def _sampling(self) -> SamplingParams:
        pick, most = self._random.choice, self._max_tokens()
        return SamplingParams(
            max_tokens=most,
            temperature=pick([0.0, 0.0, 0.7, 1.5]),
            top_p=pick([1.0, 0.9]),
            top_k=pick([0, 0, 20]),
            repetition_penalty=pick([1.0, 1.2]),
            presence_penalty=pick([0.0, 0.5]),
            seed=pick([None, 7]),
            stop=pick([(), ("ing",), ("\n\n", "zz")]),
            ignore_eos=pick([True, False]),
            logprobs=pick([None, None, 0, 3]),
            n=pick([1, 1, 1, 2, 3]),
            min_tokens=min(most, pick([0, 0, 2])),
            stop_token_ids=pick([(), (40,)]),
            logit_bias=pick([{}, {50: 3.0, 60: -100.0}]),
            guide=pick([None] * 9 + [Guide(kind="regex", text="[a-z ]{3,60}")]),
        )
