"""The form for a benchmark: every field a text, and what it comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from roundhouse.serve.benchmark.records import BenchmarkHeader
from roundhouse.serve.measurement.about import Subject

from .form_words import words_of
from .requests import BenchmarkRequest
from .workloads import named_workloads

__all__ = ["BenchmarkForm", "may_be_asked_again"]

_Typed = Annotated[str, Field(max_length=2000)]
_OF_URL = ("url", "model", "api_key", "server", "tokenizer", "host")
_OF_WORKLOAD = (
    "input_tokens",
    "output_tokens",
    "input_spread",
    "output_spread",
    "prefix_tokens",
    "prefixes",
    "cancel_share",
    "cancel_after_s",
    "requests_each",
    "least_requests",
)
_OVERRIDES = ("guard", "kernels", "max_batch_size", "kv_cache_tokens")
_LISTS = ("concurrencies", "prefill_lengths")
_PLAIN = ("repeats", "seed", "request_timeout_s")
_BETWEEN = re.compile(r"[\s,;]+")
OWN = "own"
"""A workload whose numbers are typed."""


def may_be_asked_again(header: BenchmarkHeader) -> bool:
    """Whether the form can ask for what a run measured: not for what was measured elsewhere, nor with somebody's file."""
    return header.imported_from is None and header.workload.kind == "synthetic"


class BenchmarkForm(BaseModel):
    """What was typed."""

    model_config = ConfigDict(frozen=True)

    subject: _Typed = "engine"
    """``engine``, ``deployment`` or ``url``."""
    engine: _Typed = ""
    deployment: _Typed = ""
    url: _Typed = ""
    model: _Typed = ""
    api_key: SecretStr = SecretStr("")
    server: _Typed = ""
    tokenizer: _Typed = ""
    host: _Typed = ""
    workload: _Typed = OWN
    """The name of one that is known, or ``own``."""
    input_tokens: _Typed = "128"
    output_tokens: _Typed = "64"
    input_spread: _Typed = ""
    output_spread: _Typed = ""
    prefix_tokens: _Typed = ""
    prefixes: _Typed = ""
    cancel_share: _Typed = ""
    cancel_after_s: _Typed = ""
    requests_each: _Typed = ""
    least_requests: _Typed = ""
    concurrencies: _Typed = "1, 8, 16, 32, 64"
    repeats: _Typed = "3"
    prefill_lengths: _Typed = ""
    driver: _Typed = "aiperf"
    seed: _Typed = ""
    request_timeout_s: _Typed = ""
    guard: _Typed = ""
    kernels: _Typed = ""
    max_batch_size: _Typed = ""
    kv_cache_tokens: _Typed = ""
    prefix_reuse: _Typed = ""
    idempotency_key: _Typed = ""

    @classmethod
    def again(cls, header: BenchmarkHeader) -> Self:
        """The form that asks for what a run measured."""
        subject, asked = header.subject, header.workload
        named = next((name for name, each in named_workloads().items() if each == asked), OWN)
        typed: dict[str, str] = {name: str(getattr(asked, name)) for name in _OF_WORKLOAD}
        if subject.engine_id is not None:
            typed |= {"subject": "engine", "engine": subject.engine_id, **_changed(subject)}
        else:
            typed |= {"subject": "url", "url": subject.url or "", "model": subject.name, "server": subject.server or ""}
        return cls(
            **typed,
            workload=named,
            concurrencies=", ".join(map(str, header.concurrencies)),
            prefill_lengths=", ".join(map(str, header.prefill_lengths)),
            repeats=str(header.repeats),
            seed="" if header.seed is None else str(header.seed),
            driver="loop" if header.driver == "loop" else "aiperf",
        )

    def read(self) -> tuple[BenchmarkRequest | None, dict[str, str]]:
        """What is asked for, and what is wrong by field; where something is, nothing is asked for."""
        given: dict[str, Any] = {name: text for name in _PLAIN if (text := getattr(self, name).strip())}
        given |= {name: [each for each in _BETWEEN.split(getattr(self, name)) if each] for name in _LISTS}
        given |= {"driver": self.driver, "workload": self._workload(), **self._subject()}
        try:
            return BenchmarkRequest.model_validate(given), {}
        except ValidationError as error:
            return None, {_field(each["loc"]): words_of(each) for each in reversed(error.errors())}

    def _subject(self) -> dict[str, Any]:
        if self.subject == "deployment":
            return {"deployment_id": self.deployment or None}
        if self.subject == "url":
            texts = {name: text for name in _OF_URL if name != "api_key" and (text := getattr(self, name).strip())}
            key = self.api_key.get_secret_value().strip()
            return texts | ({"api_key": key} if key else {})
        host = {"host": self.host} if self.host else {}
        return {"engine_id": self.engine or None, "overrides": self._overrides(), **host}

    def _workload(self) -> Mapping[str, Any]:
        named = named_workloads().get(self.workload)
        if named is not None:
            return named.model_dump()
        return {name: text for name in _OF_WORKLOAD if (text := getattr(self, name).strip())}

    def _overrides(self) -> dict[str, Any]:
        given: dict[str, Any] = {name: text for name in _OVERRIDES if (text := getattr(self, name).strip())}
        return given | ({"prefix_reuse": self.prefix_reuse == "on"} if self.prefix_reuse else {})


def _changed(subject: Subject) -> dict[str, str]:
    """What an engine ran with that its recipe does not say, as it would be typed."""
    settings, recipe = subject.settings or {}, subject.recipe
    usual = {"guard": recipe.get("guard"), "max_batch_size": recipe.get("max_batch_size"), "kernels": "auto"}
    typed = {name: str(found) for name, value in usual.items() if (found := settings.get(name)) not in (None, value)}
    if settings.get("prefix_reuse") is False:
        typed["prefix_reuse"] = "off"
    planned = (subject.manifest or {}).get("plan", {}).get("kv_tokens")
    tokens = (settings.get("kv") or {}).get("tokens")
    return typed | ({"kv_cache_tokens": str(tokens)} if tokens not in (None, planned) else {})


def _field(place: tuple[int | str, ...]) -> str:
    """The field in which something was typed, from where it is in the request."""
    names = [str(each) for each in place if isinstance(each, str) and each not in ("overrides",)]
    if not names:
        return "form"
    if names[0] == "workload":
        return names[1] if len(names) > 1 else "workload"
    return {"engine_id": "engine", "deployment_id": "deployment"}.get(names[0], names[0])
