"""Settings that a compiled engine can run with: what was fixed when it was built is not changed when it is served."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from roundhouse.build.compiled import COMPILED
from roundhouse.errors import EngineError, UsageError

from .geometry import EngineGeometry, read_geometry
from .ranks import page_bytes

if TYPE_CHECKING:
    from roundhouse.build.compiled import CompiledGuard
    from roundhouse.build.engine import Engine
    from roundhouse.build.planner.kv_budget import KvBudget

    from ...settings import EngineSettings

__all__ = ["engine_geometry", "fit_settings"]

_log = logging.getLogger(__name__)

_REBUILD = "Build the engine again with other limits."
_GIVEN_SIZES = ("kv_cache_bytes", "kv_cache_tokens")


def engine_geometry(engine: Engine) -> EngineGeometry:
    """What the engine's own ``config.json`` says.

    Raises:
        EngineError: nothing was compiled, it is no engine that runs here, or its pages are not those of the plan.
    """
    if engine.manifest.compiled is None:
        raise EngineError(f"engine {engine.manifest.id} holds nothing that TensorRT-LLM runs", hint="Build it again.")
    geometry = read_geometry(engine.folder / COMPILED / "config.json")
    plan = engine.manifest.plan
    planned = plan.kv_layout.bytes_per_token * geometry.page_tokens
    if page_bytes(geometry) != planned:  # the pool would take other bytes than memory was shared out for
        raise EngineError(
            f"engine {engine.manifest.id}: its KV pages take {page_bytes(geometry):,} B, and {planned:,} B by its plan",
            hint="Build it again.",
        )
    return geometry


def fit_settings(settings: EngineSettings, engine: Engine) -> EngineSettings:
    """Settings with what an engine decides: whether prompts may be cut and found again, how long requests get, and
    the most pages that its page check counts. A larger pool that somebody gave the size of is refused; one that free memory
    decided becomes that of the page check.

    Raises:
        UsageError: a limit is above what the engine was built for, or a setting belongs to another target.
        EngineError: as :func:`engine_geometry`.
    """
    geometry = engine_geometry(engine)
    guard = engine.manifest.compiled.guard if engine.manifest.compiled and settings.guard != "off" else None
    problems = [*_above_limits(settings, geometry), *_other_targets(settings, geometry)]
    if guard is not None:
        problems += _beyond_the_guard(settings, guard)
    if problems:
        raise UsageError(f"engine {engine.manifest.id} cannot run like this: {'; '.join(problems)}", hint=_REBUILD)
    if guard is not None and settings.kv.pages > guard.pages:
        _log.warning(
            "engine %s: %s leaves room for %s KV pages; the pool has the %s that its page check counts",
            engine.manifest.id,
            settings.kv.binding_limit,
            f"{settings.kv.pages:,}",
            f"{guard.pages:,}",
        )
        settings = settings.model_copy(update={"kv": _shortened(settings.kv, guard.pages)})
    longest = min(settings.max_seq_len, geometry.build_config.max_input_len)
    if geometry.takes_chunks:
        return settings.model_copy(update={"max_seq_len": longest})
    # A preempted request is computed again in one piece, the answer's tokens included.
    whole = min(longest, settings.max_num_tokens)
    if whole < settings.max_seq_len:
        _log.warning(
            "engine %s reads prompts whole (its attention has no paged context): requests may have %d tokens, "
            "for that many run in a step; max_num_tokens decides it when the engine is built",
            engine.manifest.id,
            whole,
        )
    return settings.model_copy(update={"max_seq_len": whole, "prefix_reuse": False, "chunked_prompts": False})


def _above_limits(settings: EngineSettings, geometry: EngineGeometry) -> list[str]:
    limits = geometry.build_config
    built = {
        "max_batch_size": limits.max_batch_size,
        "max_num_tokens": limits.max_num_tokens,
        "max_seq_len": limits.max_seq_len,
    }
    problems = [
        f"{key} {getattr(settings, key):,} is above its {most:,}"
        for key, most in built.items()
        if getattr(settings, key) > most
    ]
    if settings.page_tokens != geometry.page_tokens:
        problems.append(f"page_tokens {settings.page_tokens} is not its {geometry.page_tokens}")
    return problems


def _other_targets(settings: EngineSettings, geometry: EngineGeometry) -> list[str]:
    problems = []
    if settings.precision == "reference":
        problems.append("the reference runs on the torch target only")
    if settings.kernels != "auto":
        problems.append(f"kernels {settings.kernels} is for the torch target")
    if settings.guard == "tags+content" and geometry.world_size > 1:
        problems.append(f"guard tags+content compares what pages hold, and they lie on {geometry.world_size} GPUs; use tags")
    return problems


def _beyond_the_guard(settings: EngineSettings, guard: CompiledGuard) -> list[str]:
    needed = {
        "max_batch_size": (settings.max_batch_size, guard.rows),
        "pages of a request": (-(-settings.max_seq_len // settings.page_tokens), guard.columns),
    }
    if (key := settings.kv.binding_limit) in _GIVEN_SIZES:
        needed[f"pages by {key}"] = (settings.kv.pages, guard.pages)
    return [f"{what} {want:,} is above the {most:,} of its page check" for what, (want, most) in needed.items() if want > most]


def _shortened(kv: KvBudget, pages: int) -> KvBudget:
    """A pool that the page check's tables hold: memory may have room for more than was foreseen when it was built."""
    changes = {
        "pages": pages,
        "group_pages": (pages,),
        "bytes": kv.bytes // kv.pages * pages,
        "tokens": pages * kv.page_tokens,
        "binding_limit": "the page check that was built with the engine",
    }
    return kv.model_copy(update=changes)
