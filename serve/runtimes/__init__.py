"""Runtimes: what runs an engine's model. Importing this room loads none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundhouse.errors import UsageError

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

    from ..engine.integrity import Integrity
    from ..engine.loop import EngineLoop
    from ..engine.runtime import EngineRuntime
    from ..engine.stages import Stages
    from ..settings import EngineSettings

__all__ = ["create_check", "create_loop", "create_runtime", "fitted_settings", "require_runnable"]


def fitted_settings(engine: Engine, settings: EngineSettings) -> EngineSettings:
    """Settings as this engine can run with them; the same again when they are fitted already.

    Raises:
        UsageError: a limit is above what the engine was compiled for, or a setting is for another target.
        EngineError: what was compiled cannot be read.
    """
    if engine.manifest.recipe.target != "tensorrt":
        return settings
    from .tensorrt_llm.fitting import fit_settings

    return fit_settings(settings, engine)


def require_runnable(engine: Engine) -> None:
    """See that our loop runs an engine on this machine, before anything is started for it.

    Raises:
        UsageError: its target has a loop of its own.
        EngineError: a part of it is missing, or it was compiled for other software or another GPU.
        SetupError: this machine lacks what runs it.
    """
    target = engine.manifest.recipe.target
    if target == "trtllm-pytorch":
        raise UsageError(
            f"engine {engine.manifest.id} is for the {target} target, whose own loop runs it",
            hint="`roundhouse export` writes what Triton's llmapi model or trtllm-serve takes; where an engine is asked for, "
            "give that server's URL.",
        )
    if target == "tensorrt":
        from .tensorrt_llm.load import require_runnable as require

        require(engine)


def create_runtime(engine: Engine, settings: EngineSettings) -> EngineRuntime:
    """Load an engine.

    Args:
        engine: what to load.
        settings: how to run it, fitted to the engine.

    Raises:
        UsageError: as :func:`require_runnable`.
        ServeError: the engine could not be loaded.
        ModelError: the checkpoint cannot be read.
        EngineError: what was compiled is missing or damaged.
        SetupError: the settings ask for native kernels, or the target for software and GPUs, that are not here.
    """
    require_runnable(engine)
    if engine.manifest.recipe.target == "torch":
        return _torch_runtime(engine, settings)
    from .tensorrt_llm.load import load_runtime

    return load_runtime(engine, settings.kv.pages)


def create_check(runtime: EngineRuntime, settings: EngineSettings) -> Integrity:
    """The page check that the settings ask for, where the runtime's pages lie."""
    from ..engine.integrity import create_integrity

    return create_integrity(settings, runtime.page_bytes, runtime.page_guard)


def create_loop(engine: Engine, settings: EngineSettings, *, stages: Stages | None = None) -> EngineLoop:
    """Load an engine and make the loop that serves it.

    Args:
        engine: what to load.
        settings: how to run it; what the engine cannot is fitted to it.
        stages: hears of the stages of every step, down to attention and linears; for profiles, as it costs time.

    Raises:
        UsageError: as :func:`fitted_settings` and :func:`require_runnable`.
        ServeError: as :func:`create_runtime`.
        EngineError: as :func:`create_runtime`.
        ModelError: the checkpoint or the tokenizer cannot be read.
        SetupError: as :func:`create_runtime`.
    """
    settings = fitted_settings(engine, settings)
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
        integrity=create_check(runtime, settings),
        on_integrity_event=EventsFile(home_of(engine.folder).integrity_events, manifest.id),
    )


def _torch_runtime(engine: Engine, settings: EngineSettings) -> EngineRuntime:
    from roundhouse.build.home import home_of

    from .torch_runtime import TorchRuntime

    manifest = engine.manifest
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
        max_seq_len=settings.max_seq_len,
    )
