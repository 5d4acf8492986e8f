"""The build, from recipe to engine, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from .compile import compile_engine
from .compiled import Compilation
from .engine import CHECKPOINT, Engine, write_manifest
from .events import OnEvent, Reporter
from .hardware import this_machine
from .home import Home
from .identity import engine_id
from .memory import choose_arithmetic, require_memory
from .models.sources import Model, fetch_detail, fetch_model, fingerprint, look_up, read_model
from .planner.plan import Plan, make_plan, require_buildable, require_legal
from .quality import judge_base, judge_engine
from .quantize import calibrate, load_base, load_tokenizer, write_checkpoint
from .recipe import Recipe
from .record import make_manifest, warn_about, warn_about_kept_defaults
from .store import EngineStore
from .texts import calibration_text
from .verify import verify_checkpoint
from .workspace import workspace

__all__ = ["Built", "Publishing", "build", "plan_recipe"]

Publishing = Callable[[Engine], AbstractContextManager[object]]
"""Given a new engine, what the one step that moves it to its place is wrapped in."""


@dataclass(frozen=True)
class Built:
    """The engine, and whether this call made it or found it there."""

    engine: Engine
    new: bool


def build(recipe: Recipe, home: Home, on_event: OnEvent, *, publishing: Publishing | None = None) -> Built:
    """Make the engine of a recipe, unless it is there already.

    Args:
        recipe: what is wanted.
        home: where the engine goes.
        on_event: told how far the build is.
        publishing: for what must be true, or written, in the moment in which the engine is there. Raising at its beginning,
            it leaves no engine.

    Raises:
        PlanRefusedError: the plan says no; nothing was spent.
        ModelError: the model cannot be read.
        BuildError: something failed on the way; no engine is left behind.
    """
    report = Reporter(on_event)
    require_buildable(recipe)
    model = _read(recipe, home, report)
    with report.stage("plan", "bytes, pages and legality, from config and headers") as stage:
        plan = make_plan(recipe, model.shape, model.inventory, this_machine())
        recipe = plan.recipe
        group = f" g{plan.group_size}" if plan.group_size else ""
        stage.result = f"{plan.quantized_modules} linears to {recipe.weights}{group}"
    require_legal(plan)
    text = calibration_text(recipe.calibration.text)
    model_fingerprint = fingerprint(model)
    arithmetic = choose_arithmetic(recipe, plan)
    identity = engine_id(recipe, plan, model_fingerprint=model_fingerprint, calibration_text=text, arithmetic=arithmetic)
    target = EngineStore(home).path(identity)

    def say_waiting() -> None:
        report.warn(f"another process is building engine {identity}; waiting for it")

    with workspace(target, on_wait=say_waiting) as place:
        if place is None:
            engine = Engine.open(target)
            warn_about_kept_defaults(report, recipe, engine.manifest)
            return Built(engine, new=False)
        require_memory(plan, arithmetic)
        checkpoint = place.folder / CHECKPOINT
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
            quality = judge_engine(checkpoint, verified.kv_scales, held_out, stage.progress, arithmetic=arithmetic)
            stage.result = f"KL {quality.kl:.3f}, top-1 agreement {quality.top1_agreement:.1%}"
        with report.stage("compile", f"for the {recipe.target} target") as stage:
            compiled = compile_engine(Compilation(plan, place.folder, stage, report))
        with report.stage("publish", "hashing files and moving the engine to its place") as stage:
            chat = bool(tokenizer.chat_template)
            warn_about(report, plan, verified, chat=chat)
            manifest = make_manifest(
                place.folder,
                identity=identity,
                recipe=recipe,
                plan=plan,
                model_fingerprint=model_fingerprint,
                verified=verified,
                quality=quality,
                compiled=compiled,
                chat=chat,
                report=report,
            )
            write_manifest(place.folder, manifest)
            place.publish(publishing(Engine(target, manifest)) if publishing else None)
            stage.result = str(target)
    return Built(Engine.open(target), new=True)


def plan_recipe(recipe: Recipe) -> Plan:
    """Plan a recipe for this machine, from configs and headers alone."""
    shape, inventory = look_up(recipe.model)
    return make_plan(recipe, shape, inventory, this_machine())


def _read(recipe: Recipe, home: Home, report: Reporter) -> Model:
    detail = fetch_detail(recipe.model, home)
    if detail is None:
        return read_model(fetch_model(recipe.model, home))
    with report.stage("import", detail) as stage:
        folder = fetch_model(recipe.model, home)
        stage.result = str(folder)
    return read_model(folder)
