"""Runtimes: what runs an engine's model. Importing this room loads none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundhouse.errors import ServeError

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

    from ..engine.loop import EngineLoop
    from ..engine.stages import Stages
    from ..settings import EngineSettings
    from .torch_runtime import TorchRuntime

__all__ = ["create_loop", "create_runtime"]


def create_runtime(engine: Engine, settings: EngineSettings) -> TorchRuntime:
    """Load an engine.

    Args:
        engine: what to load.
        settings: how to run it.

    Raises:
        ServeError: this version has no runtime for the engine's target.
        ModelError: the checkpoint cannot be read.
        SetupError: the settings ask for native kernels, which cannot be had here.
    """
    manifest = engine.manifest
    if manifest.recipe.target != "torch":
        raise ServeError(
            f"engine {manifest.id} is for the {manifest.recipe.target} target, which this version does not run",
            hint="Build it for the torch target.",
        )
    from roundhouse.build.home import home_of

    from .torch_runtime import TorchRuntime

    return TorchRuntime(
        engine.checkpoint,
        shape=manifest.plan.shape,
        layout=manifest.plan.kv_layout,
        scales=manifest.kv_scales,
        pages=settings.kv.pages,
        page_tokens=settings.page_tokens,
        kernel_cache=home_of(engine.folder).kernels,
        kernels=settings.kernels,
        precision=settings.precision,
    )


def create_loop(engine: Engine, settings: EngineSettings, *, stages: Stages | None = None) -> EngineLoop:
    """Load an engine and make the loop that serves it.

    Args:
        engine: what to load.
        settings: how to run it.
        stages: hears of the stages of every step, down to attention and linears; for profiles, as it costs time.

    Raises:
        ServeError: as :func:`create_runtime`.
        ModelError: the checkpoint or the tokenizer cannot be read.
        SetupError: as :func:`create_runtime`.
    """
    runtime = create_runtime(engine, settings)
    from roundhouse.build.home import home_of

    from ..engine.loop import EngineLoop
    from ..engine.stages import NO_STAGES
    from ..engine.tokenizer import load_tokenizer
    from ..integrity_events import EventsFile

    if stages is not None:
        runtime.name_stages(stages)
    manifest = engine.manifest
    return EngineLoop(
        runtime,
        settings,
        load_tokenizer(engine.checkpoint),
        vocab=manifest.plan.shape.vocab,
        stages=stages or NO_STAGES,
        on_integrity_event=EventsFile(home_of(engine.folder).integrity_events, manifest.id),
    )
