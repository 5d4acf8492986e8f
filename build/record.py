"""Turning a finished build into its manifest."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from .compiled import Compiled
from .engine import FileRecord, Manifest, hash_file
from .events import Reporter
from .identity import versions
from .planner.plan import Plan
from .quality import Quality
from .recipe import Recipe
from .verify import Verified

__all__ = ["default_name", "make_manifest", "warn_about", "warn_about_kept_defaults"]


def warn_about(report: Reporter, plan: Plan, verified: Verified, *, chat: bool) -> None:
    """Say, and so record, everything about an engine that its user should know."""
    warnings = [*plan.warnings, verified.kv_scales.warning]
    if not chat:
        warnings.append("the tokenizer has no chat template: completions work, chat does not")
    for warning in warnings:
        if warning:
            report.warn(warning)


def warn_about_kept_defaults(report: Reporter, recipe: Recipe, existing: Manifest) -> None:
    """Say which keys of a recipe were not taken, because the engine was there already with other defaults."""
    asked, kept = recipe.model_dump(exclude_unset=True), existing.recipe.model_dump()
    ignored = [key for key, value in asked.items() if key not in ("model", "calibration") and value != kept[key]]
    if recipe.name and recipe.name != existing.name:
        report.warn(f"the engine is there already, and is called {existing.name}, not {recipe.name}")
    differing = [f"{key} {kept[key]} (asked: {asked[key]})" for key in ignored if key not in ("name", "group_size")]
    if differing:
        report.warn(f"the engine keeps the defaults it was built with: {', '.join(differing)}; `serve` has options for them")


def make_manifest(
    folder: Path,
    *,
    identity: str,
    recipe: Recipe,
    plan: Plan,
    model_fingerprint: str,
    verified: Verified,
    quality: Quality | None,
    compiled: Compiled | None,
    chat: bool,
    report: Reporter,
) -> Manifest:
    """The manifest of the engine whose files lie in ``folder``; every one of them is hashed."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    hardware = plan.hardware
    return Manifest(
        id=identity,
        name=recipe.name or default_name(recipe),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        recipe=recipe,
        plan=plan,
        model_fingerprint=model_fingerprint,
        versions=versions(),
        hardware={"name": hardware.name, "kind": hardware.kind, "cores": str(hardware.cores)},
        modules=verified.modules,
        kv_scales=verified.kv_scales,
        quality=quality,
        compiled=compiled,
        chat=chat,
        stage_seconds=dict(report.seconds),
        warnings=tuple(report.warnings),
        files={str(path.relative_to(folder)): FileRecord(bytes=path.stat().st_size, sha256=hash_file(path)) for path in paths},
    )


def default_name(recipe: Recipe) -> str:
    """What an engine is called when its recipe does not say."""
    source = recipe.model.removeprefix("demo:").rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", source).strip("-._") or "model"
    return f"{plain}-{recipe.weights}-kv-{recipe.kv_cache}"
