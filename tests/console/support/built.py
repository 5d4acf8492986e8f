"""Engines as a build would have left them: manifests of real plans, recorded as workers record them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shipped_plans import plan_of_shape
from sqlalchemy.orm import Session

from roundhouse.build.engine import Engine, FileRecord, Manifest
from roundhouse.build.home import Home
from roundhouse.build.quality import Quality
from roundhouse.console.engines.recording import record_engine

PLACE = Home(Path("/srv/roundhouse"))
ID = "0123456789abcdef"


def manifest_of(engine_id: str = ID, name: str = "tiny", *, shape: str = "qwen3-8b", **changes: Any) -> Manifest:
    """A manifest; recipe keys are ``weights``, ``kv_cache``, ``guard`` and ``target``, the rest are the manifest's own fields.

    The plan is one for a GPU, whose numbers are large; left out, the target is the one that workers serve.
    """
    target = changes.pop("target", "torch")
    keys = {key: changes.pop(key) for key in ("weights", "kv_cache", "guard") if key in changes}
    plan = plan_of_shape(shape, "h200", name=name, **keys)
    plan = plan.model_copy(update={"recipe": plan.recipe.model_copy(update={"target": target})})
    scales = (
        {"state": "calibrated", "k": (0.5, 0.25), "v": (0.125, 0.0625)}
        if plan.recipe.kv_cache == "fp8"
        else {"state": "not used"}
    )
    fields: dict[str, Any] = {
        "id": engine_id,
        "name": name,
        "created": "2026-11-30T03:00:00+00:00",
        "recipe": plan.recipe,
        "plan": plan,
        "model_fingerprint": "ab" * 32,
        "versions": {"torch": "2.13.0"},
        "hardware": {"name": "AMD EPYC"},
        "modules": {
            "model.layers.0.mlp.up_proj": "int4_awq g128, input scale kept",
            "model.layers.10.mlp.up_proj": "int4_awq g128, input scale kept",
            "model.layers.2.mlp.up_proj": "int4_awq g128, input scale kept",
            "model.norm": "bf16",
        },
        "kv_scales": scales,
        "quality": Quality(
            text="a text",
            arithmetic="float32",
            tokens=1024,
            base_perplexity=20.0,
            engine_perplexity=22.0,
            kl=0.05,
            top1_agreement=0.9,
        ),
        "chat": True,
        "stage_seconds": {"measure": 3.0, "plan": 1.0},
        "warnings": (),
        "files": {"checkpoint/model.safetensors": FileRecord(bytes=3 * 2**20, sha256="cd" * 32)},
    }
    return Manifest(**(fields | changes))


def add_built(session: Session, engine_id: str = ID, name: str = "tiny", *, host: str = "one", **changes: Any) -> Manifest:
    """An engine that a worker on a host has found there."""
    manifest = manifest_of(engine_id, name, **changes)
    record_engine(session, Engine(PLACE.engines / engine_id, manifest), host, PLACE)
    return manifest
