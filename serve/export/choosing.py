"""Which container serves an engine: by its target, and by the server that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from roundhouse.errors import UsageError

from ..settings import Overrides
from ..triton.repository import model_name
from .container import CONTAINER_ENTRY, GPU_IMAGE, IMAGE, Asked, EngineContainer, Need
from .image import require_image
from .planned import planned_settings

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["Server", "container_of"]

Server = Literal["triton", "trtllm-serve"]

_BESIDE_TENSORRT_LLM = "/opt/roundhouse/engine/bin/roundhouse"
_MEMORY = ("kv_cache_tokens", "memory_fraction")
_GIB = 2**30
_PROCESSES_BYTES = 3 * _GIB
"""Of a server and an engine process, or of a rank, with their libraries, without weights and pages."""
_SHARED_BYTES = 2 * _GIB
"""For Triton's tensors, and for what GPUs of one node tell each other; taken only as far as it is used."""


def container_of(
    engine: Engine,
    *,
    image: str | None = None,
    overrides: Overrides | None = None,
    server: Server = "triton",
    gpus_per_node: int = 8,
) -> EngineContainer:
    """How an engine is served in a container on one machine.

    Args:
        engine: the engine.
        image: None takes the name of the Dockerfile's stage.
        overrides: what to change of its recipe.
        server: ``trtllm-serve`` for engines of `trtllm-pytorch` only.
        gpus_per_node: how many a machine has.

    Raises:
        UsageError: the image is none, or the engine takes more GPUs than one machine has, is not for this server, or
            cannot run with these overrides.
        EngineError: arguments that were written when it was built cannot be read.
    """
    target = engine.manifest.recipe.target
    if image is not None:
        require_image(image)
    changes = overrides or Overrides()
    if target != "trtllm-pytorch":
        changes = _sized(engine, changes)
    need = _need(engine, changes)
    if need.gpus > gpus_per_node:
        raise UsageError(
            f"engine {engine.manifest.id} takes {need.gpus} GPUs, and a machine has {gpus_per_node}",
            hint="What a deployment over several machines needs is in docs/deploy.md.",
        )
    if target == "trtllm-pytorch":
        from .llm_container import llmapi_container, trtllm_serve_container

        make = llmapi_container if server == "triton" else trtllm_serve_container
        return make(engine, image or GPU_IMAGE, need, changes)
    if server != "triton":
        raise UsageError(f"engine {engine.manifest.id} is for the target {target}, which {server} does not serve")
    return _own(engine, image, need, changes)


def _sized(engine: Engine, overrides: Overrides) -> Overrides:
    """Overrides that the engine can run with, and that there is room for on the machine that the plan is of.

    On a CPU with the KV pool's bytes: elsewhere a share of free memory would be another.

    Raises:
        UsageError: the combination is impossible, or beyond what the engine was compiled for.
        EngineError: what was compiled cannot be read.
    """
    kv_bytes = planned_settings(engine, overrides).kv.bytes
    if engine.manifest.recipe.target != "torch":
        return overrides
    return overrides.model_copy(update={**dict.fromkeys(_MEMORY), "kv_cache_bytes": kv_bytes})


def _need(engine: Engine, overrides: Overrides) -> Need:
    plan, compiled = engine.manifest.plan, engine.manifest.compiled
    if engine.manifest.recipe.target == "torch":
        weights_and_pages = plan.weight_bytes_per_gpu + (overrides.kv_cache_bytes or 0)
        return Need(engine.total_bytes, weights_and_pages + _PROCESSES_BYTES, _SHARED_BYTES)
    return Need(
        engine.total_bytes,
        memory_bytes=engine.total_bytes + plan.gpus * _PROCESSES_BYTES,  # what is loaded passes through the host's memory
        shared_bytes=plan.gpus * _SHARED_BYTES,
        gpus=plan.gpus,
        compute_capability=compiled.compute_capability if compiled else None,
    )


def _own(engine: Engine, image: str | None, need: Need, overrides: Overrides) -> EngineContainer:
    """A container that runs `roundhouse serve`: its front knows whether tokens come out, and whether steps are checked."""
    return EngineContainer(
        name=model_name(engine),
        engine_id=engine.manifest.id,
        image=image or (GPU_IMAGE if need.gpus else IMAGE),
        entrypoint=(CONTAINER_ENTRY, _BESIDE_TENSORRT_LLM) if need.gpus else (),
        arguments=("serve", engine.manifest.id, "--host", "0.0.0.0", *_options(overrides)),
        ports={"openai": 9000, "http": 8000, "grpc": 8001, "metrics": 8002},
        live=Asked("openai", "/healthz"),
        ready=(Asked("openai", "/readyz"),),
        metrics=("metrics",),
        need=need,
    )


def _options(overrides: Overrides) -> Iterator[str]:
    """Overrides as options of `roundhouse serve`.

    Raises:
        UsageError: it has no such option.
    """
    for key, value in overrides.model_dump(exclude_none=True).items():
        option = key.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
        else:
            yield from (f"--{option}", str(value))
