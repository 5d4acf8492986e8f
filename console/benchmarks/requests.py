"""What people ask to be measured, before it is known where."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.settings import Overrides

from ..deployments.addresses import HttpUrl

__all__ = ["KEY_VARIABLE", "BenchmarkRequest", "Subjects"]

KEY_VARIABLE = "ROUNDHOUSE_ENDPOINT_API_KEY"
"""The environment variable of a job's process that holds an endpoint's key."""
_MOST_TOKENS, _MOST_CONCURRENCY, _MOST_REQUESTS = 1_000_000, 4_096, 2_000_000
_Concurrency = Annotated[int, Field(ge=1, le=_MOST_CONCURRENCY)]
_Tokens = Annotated[int, Field(ge=1, le=_MOST_TOKENS)]
_Id = Annotated[str, Field(min_length=1, max_length=64)]


class Subjects(BaseModel):
    """What is measured: an engine, a deployment of ours, or an endpoint elsewhere; exactly one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine_id: _Id | None = None
    """It is started for the time of the measurement."""
    deployment_id: _Id | None = None
    """It is measured as it is served now."""
    url: HttpUrl | None = None
    """Base URL of any OpenAI-compatible endpoint."""
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The model's name at an endpoint elsewhere; None takes the only one there is."""
    api_key: Annotated[SecretStr, Field(min_length=1, max_length=4_096)] | None = None
    """Of an endpoint elsewhere. It is kept encrypted."""
    server: Annotated[str, Field(max_length=200)] | None = None
    """What serves an endpoint elsewhere, in words, for the history: ``vLLM 0.32 on 8×H200``."""
    host: Annotated[str, Field(max_length=255)] | None = None
    """Which host's worker measures; None takes one that can."""
    overrides: Overrides = Overrides()
    """Of the engine's recipe, where it is started for this."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(each is not None for each in (self.engine_id, self.deployment_id, self.url)) != 1:
            raise ValueError("name an engine, a deployment or a URL, and one of them only")
        if self.url is None and any((self.model, self.api_key, self.server)):
            raise ValueError("model, API key and server are told of a URL only")
        if self.engine_id is None and self.overrides != Overrides():
            raise ValueError("only an engine that is started for this can be started otherwise")
        key = "" if self.api_key is None else self.api_key.get_secret_value()
        if not key.isascii() or (key and (not key.isprintable() or " " in key)):
            raise ValueError("an API key is visible ASCII, without spaces")
        return self


class BenchmarkRequest(Subjects):
    """A benchmark that somebody asks for."""

    tokenizer: Annotated[str, Field(max_length=1_000)] | None = None
    """Folder, on the worker's host, of the tokenizer of an endpoint's model, for prompts of an exact length."""
    driver: Literal["aiperf", "loop"] = "aiperf"
    """``loop``: the bare engine loop, without HTTP; of an engine only."""
    workload: Workload = Workload()
    concurrencies: Annotated[tuple[_Concurrency, ...], Field(min_length=1, max_length=32)] = (1, 8, 16, 32, 64)
    repeats: int = Field(default=3, ge=1, le=100)
    prefill_lengths: Annotated[tuple[_Tokens, ...], Field(max_length=32)] = ()
    """Prompt lengths at which prefill is measured apart."""
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    """Of prompts and lengths. None: 0 for an engine that is started for this; else one that nobody had before, drawn when it
    is measured, because a server that keeps running may know the prompts of the run before."""
    request_timeout_s: float = Field(default=600.0, gt=0, le=86_400)

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.driver == "loop" and self.engine_id is None:
            raise ValueError("the bare loop is an engine's: name one")
        if self.tokenizer is not None and self.url is None:
            raise ValueError("a tokenizer is named for a URL only")
        if self.workload.kind != "synthetic":
            raise ValueError("conversations are measured from the command line, where their file is")
        for numbers in (self.concurrencies, self.prefill_lengths):
            if len(set(numbers)) < len(numbers):
                raise ValueError(f"{', '.join(map(str, numbers))}: a number is there twice")
        requests = self.repeats * sum(self.workload.requests(each) for each in self.concurrencies)
        if requests > _MOST_REQUESTS:
            raise ValueError(f"these are {requests:,} requests, and {_MOST_REQUESTS:,} at most are measured in one run")
        for what, tokens in (("prompts", self.workload.input_tokens), ("answers", self.workload.output_tokens)):
            if tokens > _MOST_TOKENS:
                raise ValueError(f"{what} of {tokens:,} tokens are asked for, and {_MOST_TOKENS:,} at most are measured")
        return self
