"""The build, from recipe to engine, in the order in which it happens."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.errors import BuildError, ModelError, PlanRefusedError

from .engine import CHECKPOINT, Engine, EngineStore, FileRecord, Manifest, hash_file, write_manifest
from .events import OnEvent, Reporter
from .hardware import Hardware, this_machine
from .home import Home
from .identity import engine_id, versions
from .kv_scales import KvScaleReport
from .plan import Plan, make_plan, require_legal
from .quality import Quality, compare_logits
from .quantize import calibrate, load_base, token_windows, write_checkpoint
from .quiet import quiet_libraries
from .recipe import Recipe
from .reference import logits, plain_model
from .sources import Model, fetch_model, fingerprint, is_imported, read_model
from .texts import HELD_OUT_NAME, calibration_text, held_out_text
from .verify import Verified, verify_checkpoint
from .workspace import workspace

if TYPE_CHECKING:
    import torch

__all__ = ["Built", "build", "plan_recipe"]

_QUALITY_WINDOWS, _QUALITY_TOKENS = 4, 256


@dataclass(frozen=True)
class Built:
    """The engine, and whether this call made it or found it there."""

    engine: Engine
    new: bool


def build(recipe: Recipe, home: Home, on_event: OnEvent) -> Built:
    """Make the engine of a recipe, unless it is there already.

    Raises:
        PlanRefusedError: the plan says no; nothing was spent.
        ModelError: the model cannot be read.
        BuildError: something failed on the way; no engine is left behind.
    """
    report = Reporter(on_event)
    model, plan = _plan_stage(recipe, home, report)
    require_legal(plan)
    text = calibration_text(recipe.calibration.text)
    model_fingerprint = fingerprint(model)
    identity = engine_id(recipe, plan, model_fingerprint=model_fingerprint, calibration_text=text)
    target = EngineStore(home).path(identity)

    with workspace(
        target, on_wait=lambda: report.warn(f"engine {identity} is being built by another process; waiting")
    ) as place:
        if place is None:
            return Built(Engine.open(target), new=False)
        _require_memory(plan)
        checkpoint = place.folder / CHECKPOINT
        with report.stage("load", "the base as bf16, and its logits on held-out text") as stage:
            base, tokenizer = load_base(model.folder), _load_tokenizer(model)
            held_out = token_windows(tokenizer, held_out_text(), windows=_QUALITY_WINDOWS, tokens=_QUALITY_TOKENS)
            base_logits = logits(base, held_out, stage.progress)
            stage.result = f"{plan.shape.architecture}, {plan.shape.layers} layers"
        with report.stage("calibrate", f"searching scales for {recipe.weights} weights and {recipe.kv_cache} KV") as stage:
            _seed(recipe.seed)
            windows = token_windows(tokenizer, text, windows=recipe.calibration.samples, tokens=recipe.calibration.tokens)
            calibrate(base, recipe, plan.group_size, windows, stage.progress)
            stage.result = f"{windows.numel()} tokens"
        with report.stage("quantize", "packing weights and writing the checkpoint") as stage:
            write_checkpoint(base, tokenizer, recipe, checkpoint)
            del base
            stage.result = f"{plan.base_bytes:,} → {plan.checkpoint_bytes:,} bytes"
        with report.stage("verify", "every tensor against the base, element by element") as stage:
            verified = verify_checkpoint(model, checkpoint, recipe, plan, stage.progress)
            stage.result = f"{len(verified.modules)} modules accounted for; KV scales {verified.kv_scales.state}"
        with report.stage("measure", "the engine's logits against the base's on held-out text") as stage:
            quality = _measure_quality(checkpoint, verified.kv_scales, held_out, base_logits, stage)
            stage.result = f"KL {quality.kl:.3f}, top-1 agreement {quality.top1_agreement:.1%}"
        with report.stage("compile", f"for the {recipe.target} target") as stage:
            # The torch target runs the checkpoint as it is; other targets compile here.
            stage.result = "nothing to compile: the torch target runs the checkpoint"
        with report.stage("publish", "hashing files and moving the engine to its place") as stage:
            _warn(report, plan, verified, tokenizer)
            files = _file_records(place.folder)
            manifest = Manifest(
                id=identity,
                name=recipe.name or _default_name(recipe),
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                recipe=recipe,
                plan=plan,
                model_fingerprint=model_fingerprint,
                versions=versions(),
                hardware=_hardware_record(plan.hardware),
                modules=verified.modules,
                kv_scales=verified.kv_scales,
                quality=quality,
                chat=bool(tokenizer.chat_template),
                stage_seconds=dict(report.seconds),
                warnings=tuple(report.warnings),
                files=files,
            )
            write_manifest(place.folder, manifest)
            place.publish()
            stage.result = str(target)
    return Built(Engine.open(target), new=True)


def plan_recipe(recipe: Recipe, home: Home, on_event: OnEvent) -> Plan:
    """Plan a recipe for this machine. A GGUF file is converted first, once."""
    return _plan_stage(recipe, home, Reporter(on_event))[1]


def _plan_stage(recipe: Recipe, home: Home, report: Reporter) -> tuple[Model, Plan]:
    if is_imported(recipe.model, home):
        folder = fetch_model(recipe.model, home)
    else:
        with report.stage("import", f"{recipe.model} to a model folder; about half a minute for a small GGUF file") as stage:
            folder = fetch_model(recipe.model, home)
            stage.result = str(folder)
    with report.stage("plan", "bytes, pages and legality, from config and headers") as stage:
        model = read_model(folder)
        plan = make_plan(recipe, model.shape, model.checkpoint, this_machine())
        stage.result = f"{plan.quantized_modules} linears to {recipe.weights}" + (
            f" g{plan.group_size}" if plan.group_size else ""
        )
    return model, plan


def estimated_build_memory(plan: Plan) -> int:
    """Bytes a build takes at its highest, rounded up: measured 1.0 GB for a model of 0.27 GB.

    Libraries, the base and a copy of its state while packing, and both models' logits on held-out text.
    """
    libraries = 600_000_000
    held_out_logits = 3 * 4 * _QUALITY_WINDOWS * _QUALITY_TOKENS * plan.shape.vocab
    return libraries + 5 * plan.base_bytes // 2 + held_out_logits


def _require_memory(plan: Plan) -> None:
    needed, free = estimated_build_memory(plan), plan.hardware.free_memory
    if needed > free:
        raise PlanRefusedError(
            f"building {plan.shape.architecture} takes about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free",
            reasons=("memory",),
            hint="Nothing was started. Free memory, raise this process's limit, or build on a larger machine.",
        )


def _load_tokenizer(model: Model) -> Any:
    from transformers import AutoTokenizer

    try:
        with quiet_libraries():
            return AutoTokenizer.from_pretrained(model.folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{model.folder} has no usable tokenizer: {error}") from None


def _seed(seed: int) -> None:
    import torch

    random.seed(seed)
    torch.manual_seed(seed)


def _measure_quality(
    checkpoint: Path, kv_scales: KvScaleReport, windows: torch.Tensor, base_logits: torch.Tensor, stage: Stage
) -> Quality:
    import torch

    engine_logits = logits(plain_model(checkpoint, kv_scales, torch.bfloat16), windows, stage.progress)
    if not bool(torch.isfinite(engine_logits).all()):
        raise BuildError("the quantized model's logits are not finite", hint="Try FP8 or BF16 weights for this model.")
    return compare_logits(base_logits, engine_logits, windows, text=HELD_OUT_NAME)


def _warn(report: Reporter, plan: Plan, verified: Verified, tokenizer: Any) -> None:
    for warning in plan.warnings:
        report.warn(warning)
    if verified.kv_scales.warning:
        report.warn(verified.kv_scales.warning)
    if verified.kv_scales.unknown:
        report.warn(f"tensors with an unknown kind of scale: {', '.join(verified.kv_scales.unknown)}")
    if not tokenizer.chat_template:
        report.warn("the tokenizer has no chat template: completions work, chat does not")


def _file_records(folder: Path) -> dict[str, FileRecord]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): FileRecord(bytes=path.stat().st_size, sha256=hash_file(path)) for path in paths}


def _hardware_record(hardware: Hardware) -> dict[str, str]:
    return {"name": hardware.name, "kind": hardware.kind, "cores": str(hardware.cores)}


def _default_name(recipe: Recipe) -> str:
    source = recipe.model.removeprefix("demo:").rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")
    return f"{source}-{recipe.weights}-kv-{recipe.kv_cache}"
