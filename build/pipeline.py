"""The build, from recipe to engine, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from .compile import compiler_for, require_machine
from .compiled import Compilation
from .copied import copy_checkpoint, has_chat_template, stays_as_it_is
from .engine import CHECKPOINT, Engine, write_manifest
from .events import OnEvent, Reporter
from .hardware import Hardware, this_machine
from .home import Home
from .identity import engine_id
from .kv_scales import scales_used
from .memory import Arithmetic, choose_arithmetic, require_memory
from .models.sources import Model, fetch_detail, fetch_model, fingerprint, look_up, read_model
from .planner.buildable import require_buildable
from .planner.gpus import hardware_called
from .planner.plan import Plan, make_plan, require_legal
from .planner.support import is_quantized_here
from .quality import Quality, judge_base, judge_engine
from .quantize import calibrate, load_base, load_tokenizer, write_checkpoint
from .recipe import Recipe
from .record import make_manifest, warn_about, warn_about_kept_defaults
from .store import EngineStore
from .texts import calibration_text
from .verify import Verified, verify_checkpoint
from .workspace import workspace

__all__ = ["Built", "Publishing", "build", "plan_recipe"]

Publishing = Callable[[Engine], AbstractContextManager[object]]
"""Given a new engine, what the one step that moves it to its place is wrapped in."""


@dataclass(frozen=True)
class Built:
    """The engine, and whether this call made it or found it there."""

    engine: Engine
    new: bool


@dataclass(frozen=True)
class _Checkpoint:
    """What is known of a checkpoint that was written."""

    verified: Verified
    quality: Quality | None
    chat: bool


def build(
    recipe: Recipe, home: Home, on_event: OnEvent, *, hardware: Hardware | None = None, publishing: Publishing | None = None
) -> Built:
    """Make the engine of a recipe, unless it is there already.

    Args:
        recipe: what is wanted.
        home: where the engine goes.
        on_event: told how far the build is.
        hardware: one device of what it shall run on; by default this machine's GPU where the target needs one and there is
            one, else its CPU. Quantizing runs on this machine's CPU either way.
        publishing: for what must be true, or written, in the moment in which the engine is there. Raising at its beginning,
            it leaves no engine.

    Raises:
        PlanRefusedError: the plan says no; nothing was spent.
        ModelError: the model cannot be read.
        SetupError: this machine cannot compile for the target; nothing was spent.
        BuildError: something failed on the way; no engine is left behind.
    """
    report = Reporter(on_event)
    hardware = hardware or hardware_called(None, recipe)
    require_machine(recipe, hardware)
    model = _read(recipe, home, report)
    with report.stage("plan", "bytes, pages and legality, from config and headers") as stage:
        plan = make_plan(recipe, model.shape, model.inventory, hardware)
        recipe = plan.recipe
        group = f" g{plan.group_size}" if plan.group_size else ""
        stage.result = f"{plan.quantized_modules} linears to {recipe.weights}{group}"
    require_legal(plan)
    require_buildable(plan)
    compiler = compiler_for(plan)
    machine = this_machine()
    text = calibration_text(recipe.calibration.text)
    model_fingerprint = fingerprint(model)
    arithmetic = choose_arithmetic(recipe, machine)
    identity = engine_id(recipe, plan, model_fingerprint=model_fingerprint, calibration_text=text, arithmetic=arithmetic)
    target = EngineStore(home).path(identity)

    def say_waiting() -> None:
        report.warn(f"another process is building engine {identity}; waiting for it")

    with workspace(target, on_wait=say_waiting) as place:
        if place is None:
            engine = Engine.open(target)
            warn_about_kept_defaults(report, recipe, engine.manifest)
            return Built(engine, new=False)
        if stays_as_it_is(recipe, quantized_here=is_quantized_here(model.shape)):
            made = _copied(model, recipe, place.folder / CHECKPOINT, report)
        else:
            require_memory(plan, arithmetic, machine)
            made = _quantized(model, plan, text, arithmetic, place.folder / CHECKPOINT, report)
        with report.stage("compile", f"for the {recipe.target} target") as stage:
            compiled = compiler(Compilation(plan, place.folder, stage, report))
        with report.stage("publish", "hashing files and moving the engine to its place") as stage:
            warn_about(report, plan, made.verified, chat=made.chat)
            manifest = make_manifest(
                place.folder,
                identity=identity,
                recipe=recipe,
                plan=plan,
                model_fingerprint=model_fingerprint,
                verified=made.verified,
                quality=made.quality,
                compiled=compiled,
                chat=made.chat,
                report=report,
            )
            write_manifest(place.folder, manifest)
            place.publish(publishing(Engine(target, manifest)) if publishing else None)
            stage.result = str(target)
    return Built(Engine.open(target), new=True)


def plan_recipe(recipe: Recipe) -> Plan:
    """Plan a recipe for this machine, from configs and headers alone."""
    shape, inventory = look_up(recipe.model)
    return make_plan(recipe, shape, inventory, hardware_called(None, recipe))


def _quantized(model: Model, plan: Plan, text: str, arithmetic: Arithmetic, checkpoint: Path, report: Reporter) -> _Checkpoint:
    """Calibrate, quantize, verify and measure."""
    recipe = plan.recipe
    with report.stage("load", f"the base, and its logits on held-out text, in {arithmetic}") as stage:
        base, tokenizer = load_base(model.folder, arithmetic), load_tokenizer(model.folder)
        held_out = judge_base(base, tokenizer, stage.progress)
        stage.result = f"{plan.shape.architecture}, {plan.shape.layers} layers, {plan.base_bytes:,} bytes"
    with report.stage("calibrate", f"searching scales for {recipe.weights} weights and {recipe.kv_cache} KV") as stage:
        calibrate(base, tokenizer, text, recipe, plan.group_size, stage.progress)
    with report.stage("quantize", "packing weights and writing the checkpoint") as stage:
        write_checkpoint(base, tokenizer, recipe, checkpoint)
        del base
        stage.result = f"{plan.base_bytes:,} → {plan.checkpoint_bytes:,} bytes"
    with report.stage("verify", "every tensor against the base, element by element") as stage:
        verified = verify_checkpoint(model, checkpoint, recipe, plan, stage.progress)
        stage.result = f"{len(verified.modules)} modules accounted for; KV scales {verified.kv_scales.state}"
    with report.stage("measure", "the engine's logits against the base's on held-out text") as stage:
        scales = scales_used(verified.kv_scales, recipe.target)
        quality = judge_engine(checkpoint, scales, held_out, stage.progress, arithmetic=arithmetic)
        stage.result = f"KL {quality.kl:.3f}, top-1 agreement {quality.top1_agreement:.1%}"
    return _Checkpoint(verified, quality, bool(tokenizer.chat_template))


def _copied(model: Model, recipe: Recipe, checkpoint: Path, report: Reporter) -> _Checkpoint:
    """Take the input's files as they are."""
    with report.stage("copy", "the checkpoint, as it is") as stage:
        verified = copy_checkpoint(model, recipe, checkpoint, stage.progress)
        stage.result = f"{model.checkpoint.tensor_bytes:,} bytes of tensors in {len(model.checkpoint.files)} files"
    report.warn("quality was not measured: the checkpoint is the input's own, and nothing here runs it")
    return _Checkpoint(verified, None, has_chat_template(checkpoint))


def _read(recipe: Recipe, home: Home, report: Reporter) -> Model:
    detail = fetch_detail(recipe.model, home)
    if detail is None:
        return read_model(fetch_model(recipe.model, home))
    with report.stage("import", detail) as stage:
        folder = fetch_model(recipe.model, home)
        stage.result = str(folder)
    return read_model(folder)
