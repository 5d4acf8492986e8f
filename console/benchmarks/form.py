"""The form for a benchmark: every field a text, and what it comes to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ValidationError

from roundhouse.serve.benchmark.records import BenchmarkHeader
from roundhouse.serve.measurement.about import Subject

from .requests import BenchmarkRequest
from .subject_form import SubjectForm, Typed
from .workloads import named_workloads

__all__ = ["BenchmarkForm", "may_be_asked_again"]

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
_BETWEEN = re.compile(r"[\s,;]+")
OWN = "own"
"""A workload whose numbers are typed."""


def may_be_asked_again(header: BenchmarkHeader) -> bool:
    """Whether the form can ask for what a run measured: not for what was measured elsewhere, nor with somebody's file."""
    return header.imported_from is None and header.workload.kind == "synthetic"


class BenchmarkForm(SubjectForm):
    """What was typed."""

    plain: ClassVar[tuple[str, ...]] = (*SubjectForm.plain, "repeats")
    of_url: ClassVar[tuple[str, ...]] = (*SubjectForm.of_url, "tokenizer")

    tokenizer: Typed = ""
    workload: Typed = OWN
    """The name of one that is known, or ``own``."""
    input_tokens: Typed = "128"
    output_tokens: Typed = "64"
    input_spread: Typed = ""
    output_spread: Typed = ""
    prefix_tokens: Typed = ""
    prefixes: Typed = ""
    cancel_share: Typed = ""
    cancel_after_s: Typed = ""
    requests_each: Typed = ""
    least_requests: Typed = ""
    concurrencies: Typed = "1, 8, 16, 32, 64"
    repeats: Typed = "3"
    prefill_lengths: Typed = ""
    driver: Typed = "aiperf"
    seed: Typed = ""
    guard: Typed = ""
    kernels: Typed = ""
    max_batch_size: Typed = ""
    kv_cache_tokens: Typed = ""
    prefix_reuse: Typed = ""

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
        given = self.given(self.plain)
        given |= {name: [each for each in _BETWEEN.split(getattr(self, name)) if each] for name in _LISTS}
        given |= {"driver": self.driver, "workload": self._workload(), **self.asked_subject()}
        if self.subject == "engine":
            given["overrides"] = self._overrides()
        try:
            return BenchmarkRequest.model_validate(given), {}
        except ValidationError as error:
            return None, self.problems(error)

    def field(self, place: tuple[int | str, ...]) -> str:
        """Fields of the workload and of what the engine is started with otherwise are called as they are there."""
        inner = [str(each) for each in place[1:] if isinstance(each, str)]
        return inner[0] if inner and place[0] in ("workload", "overrides") else super().field(place)

    def _workload(self) -> Mapping[str, Any]:
        named = named_workloads().get(self.workload)
        if named is not None:
            return named.model_dump()
        return self.given(_OF_WORKLOAD)

    def _overrides(self) -> dict[str, Any]:
        return self.given(_OVERRIDES) | ({"prefix_reuse": self.prefix_reuse == "on"} if self.prefix_reuse else {})


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
