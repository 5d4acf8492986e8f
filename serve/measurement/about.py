"""Whom and what a record is about: the subject that was asked, and the environment that it ran in."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import model_validator

from roundhouse.build.hardware import Hardware

from ..history.record import Record

__all__ = ["Environment", "Subject"]

_PARALLEL = ("tensor_parallel", "pipeline_parallel")
"""Keys of a recipe: one that is not written down is 1."""
_MOST_DEVICES = 2**16
"""Nobody has as many; a recipe of elsewhere may say anything."""
_PARTS = ("recipe", "plan", "versions")
"""Objects within a manifest."""
_TEXTS = ("name", "model", "target", "role", "weights", "kv_cache", "guard")
"""Keys of a recipe that histories sort and filter by."""


class Subject(Record):
    """What was measured: an engine of ours, or any OpenAI-compatible endpoint."""

    kind: Literal["engine", "endpoint"]
    name: str
    """The engine's, or the model's as the endpoint calls it."""
    model: str
    """What it was made from, where that is known, else the model's name."""
    url: str | None = None
    """Base URL that was asked, without secrets; None for the bare loop."""
    engine_id: str | None = None
    manifest: dict[str, Any] | None = None
    """``engine.json``."""
    settings: dict[str, Any] | None = None
    """What the engine process ran with: :class:`~roundhouse.serve.settings.EngineSettings`."""
    server: str | None = None
    """What serves an external endpoint, as told by whoever measured: ``vLLM 0.32 on 8×H200``."""

    @model_validator(mode="after")
    def _is_readable(self) -> Self:
        """What is looked at in a manifest and in settings has the type that it must have."""
        manifest = self.manifest or {}
        for part in _PARTS:
            if not isinstance(manifest.get(part, {}), dict):
                raise ValueError(f"manifest: {part} is no object")
        if not isinstance(manifest.get("plan", {}).get("recipe", {}), dict):
            raise ValueError("manifest: the recipe of its plan is no object")
        for key in _TEXTS:
            if not isinstance(self.recipe.get(key), str | None):
                raise ValueError(f"manifest: {key} of its recipe is no text")
        kv = (self.settings or {}).get("kv") or {}
        if not isinstance(kv, dict) or not isinstance(kv.get("tokens"), int | None):
            raise ValueError("settings: kv.tokens is no number")
        return self

    @property
    def recipe(self) -> dict[str, Any]:
        """The recipe's keys; empty for what was not built here."""
        recipe: dict[str, Any] = (self.manifest or {}).get("recipe", {})
        return recipe

    @property
    def devices(self) -> int | None:
        """GPUs that an engine takes, by the parallelism of its recipe; None where that does not say."""
        told = [self.recipe.get(key) for key in _PARALLEL]
        counts = [each for each in told if isinstance(each, int) and 0 < each < _MOST_DEVICES]
        return math.prod(counts) if counts else None


class Environment(Record):
    """Where it was measured."""

    host: str
    """Empty where an imported file does not say."""
    hardware: Hardware | None
    """Of what was measured: the GPU where an engine's target needs one, else the CPU. None where nobody knows a server's."""
    gpus: tuple[str, ...] = ()
    """Names of all GPUs of the machine, used or not, where they could be asked."""
    driver: str | None = None
    """NVIDIA's, where there is one."""
    versions: dict[str, str]
    """Of packages that matter to speed."""
    idle_cores: float | None = None
    """Cores that other processes kept busy just before."""
