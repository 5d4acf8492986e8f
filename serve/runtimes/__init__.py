"""Runtimes: what runs an engine's model. Importing this room loads none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundhouse.errors import ServeError

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

    from ..engine.loop import EngineLoop
    from ..settings import EngineSettings

__all__ = ["create_loop"]


def create_loop(engine: Engine, settings: EngineSettings) -> EngineLoop:
    """Load an engine and make the loop that serves it.

    Raises:
        ServeError: this version has no runtime for the engine's target.
        ModelError: the checkpoint or the tokenizer cannot be read.
        SetupError: the settings ask for native attention, which cannot be had here.
    """
    manifest = engine.manifest
    if manifest.recipe.target != "torch":
        raise ServeError(
            f"engine {manifest.id} is for the {manifest.recipe.target} target, which this version does not run",
            hint="Build it for the torch target.",
        )
    from roundhouse.build.home import home_of

    from ..engine.loop import EngineLoop
    from ..engine.tokenizer import load_tokenizer
    from .torch_runtime import TorchRuntime

    runtime = TorchRuntime(
        engine.checkpoint,
        shape=manifest.plan.shape,
        layout=manifest.plan.kv_layout,
        scales=manifest.kv_scales,
        pages=settings.kv.pages,
        page_tokens=settings.page_tokens,
        kernels=home_of(engine.folder).kernels,
        attention=settings.attention,
        precision=settings.precision,
    )
    return EngineLoop(runtime, settings, load_tokenizer(engine.checkpoint), vocab=manifest.plan.shape.vocab)
