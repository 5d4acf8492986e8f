"""Engines as tables that can be pasted into a ticket."""

from __future__ import annotations

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from .compiled import Compiled
from .engine import Engine
from .quality import Quality
from .terminal import byte_text

__all__ = ["engine_summary", "engines_table", "modules_table"]


def engine_summary(engine: Engine) -> Table:
    """The facts of one engine that people ask for first."""
    manifest = engine.manifest
    plan, quality, recipe = manifest.plan, manifest.quality, manifest.recipe
    group = f" g{plan.group_size}" if plan.group_size else ""
    rows = [
        ("engine", f"{manifest.id}  {manifest.name}"),
        ("folder", str(engine.folder)),
        ("made", f"{manifest.created} from {recipe.model}"),
        ("target", f"{recipe.target}, role {recipe.role}"),
        *([("compiled", _compiled(manifest.compiled))] if manifest.compiled else []),
        ("weights", f"{recipe.weights}{group}: {_bytes(plan.base_bytes)} → {_bytes(plan.checkpoint_bytes)}"),
        ("KV cache", f"{recipe.kv_cache}, {plan.kv_bytes_per_token:,} B a token; scales {manifest.kv_scales.state}"),
        *_quality(quality),
        ("chat", "yes" if manifest.chat else "no: the tokenizer has no chat template; completions work"),
    ]
    rows += [("warning", warning) for warning in manifest.warnings]
    return _two_columns(rows)


def _quality(quality: Quality | None) -> list[tuple[str, str]]:
    if quality is None:
        return [("quality", "not measured: this package does not run such a model itself")]
    perplexity = f"{quality.base_perplexity:.2f} → {quality.engine_perplexity:.2f}"
    return [
        ("perplexity", f"{perplexity} on {quality.tokens:,} tokens of {quality.text}"),
        ("agreement", f"{quality.top1_agreement:.1%} of next tokens, KL {quality.kl:.3f} (computed in {quality.arithmetic})"),
    ]


def _compiled(compiled: Compiled) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(compiled.versions.items()))
    gpu = f" on SM {compiled.compute_capability}" if compiled.compute_capability else ""
    ranks = f"{compiled.world_size} rank{'s' * (compiled.world_size > 1)}"
    return f"for {versions}{gpu}, {ranks}"


def engines_table(engines: list[Engine]) -> Table:
    """One row per engine."""
    table = Table(box=SIMPLE)
    for column in ("id", "name", "target", "weights", "KV", "size", "agreement", "made"):
        table.add_column(
            column,
            justify="right" if column in ("size", "agreement") else "left",
            no_wrap=column in ("id", "size", "agreement"),
        )
    for engine in engines:
        manifest = engine.manifest
        group = f" g{manifest.plan.group_size}" if manifest.plan.group_size else ""
        table.add_row(
            manifest.id,
            manifest.name,
            manifest.recipe.target,
            manifest.recipe.weights + group,
            manifest.recipe.kv_cache,
            byte_text(engine.total_bytes),
            f"{manifest.quality.top1_agreement:.1%}" if manifest.quality else "not measured",
            manifest.created.split("T")[0],
        )
    return table


def modules_table(engine: Engine) -> Table:
    """What each kind of module became; layers that became the same are one row."""
    kinds: dict[tuple[str, str], int] = {}
    for module, became in engine.manifest.modules.items():
        name = ".".join("*" if part.isdigit() else part for part in module.split("."))
        kinds[name, became] = kinds.get((name, became), 0) + 1
    table = Table("module", "became", "count", box=SIMPLE)
    for (name, became), count in sorted(kinds.items()):
        table.add_row(name, became, str(count))
    return table


def _two_columns(rows: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def _bytes(count: int) -> str:
    return f"{byte_text(count)} ({count:,} B)"
