"""Verified checkpoints for the tensorrt target, made as a build makes them, up to where it compiles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundhouse.build.models.sources import Model
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.quantize import calibrate, load_base, load_tokenizer, write_checkpoint
from roundhouse.build.recipe import recipe_from
from roundhouse.build.texts import calibration_text
from roundhouse.build.verify import verify_checkpoint

__all__ = ["VerifiedCheckpoint", "plan_for", "verified_checkpoint"]


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """A checkpoint folder and the plan it was made for."""

    folder: Path
    plan: Plan
    model: Model


def plan_for(model: Model, *, tensor: int = 1, pipeline: int = 1, **keys: object) -> Plan:
    """A plan of the tensorrt target on H100s."""
    recipe = recipe_from(
        {
            "model": str(model.folder),
            "target": "tensorrt",
            "tensor_parallel": tensor,
            "pipeline_parallel": pipeline,
            "max_batch_size": 8,
            "max_seq_len": 256,
            "calibration": {"samples": 1, "tokens": 64, "alpha_step": 0.5},
            **keys,
        }
    )
    return make_plan(recipe, model.shape, model.inventory, hardware_called("H100-80-SXM"))


def verified_checkpoint(model: Model, folder: Path, **keys: object) -> VerifiedCheckpoint:
    """Quantize a model as recipe keys say, write its checkpoint and verify it."""
    plan = plan_for(model, **keys)
    base, tokenizer = load_base(model.folder, "bfloat16"), load_tokenizer(model.folder)
    calibrate(base, tokenizer, calibration_text(None), plan.recipe, plan.group_size, lambda *_: None)
    write_checkpoint(base, tokenizer, plan.recipe, folder)
    verify_checkpoint(model, folder, plan.recipe, plan, lambda *_: None)
    return VerifiedCheckpoint(folder, plan, model)
