"""How an engine is served in a container, whoever runs that: image, command, files, ports, and what to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundhouse.errors import UsageError

from ..triton.repository import model_name

if TYPE_CHECKING:
    from roundhouse.build.engine import Engine

__all__ = ["GPU_IMAGE", "HOME", "IMAGE", "PORTS", "Asked", "EngineContainer", "container_of"]

IMAGE, GPU_IMAGE = "roundhouse:cpu", "roundhouse:gpu"
"""What the Dockerfile's stages are called when nobody names a registry."""
HOME = "/home/roundhouse/data"
"""Where the images keep their home."""
PORTS: Mapping[str, int] = {"openai": 9000, "http": 8000, "grpc": 8001, "metrics": 8002}
"""Where `roundhouse serve` listens: the front, and Triton."""

_CONTAINER_ENTRY = "/opt/nvidia/nvidia_entrypoint.sh"
"""Sets NVIDIA's containers up for the driver of the machine, and then runs its arguments."""
_BESIDE_TENSORRT_LLM = "/opt/roundhouse/engine/bin/roundhouse"
_GIB = 2**30
_PROCESSES_BYTES = 3 * _GIB
"""Of Triton, its stub, the front, and an engine process with its libraries, without weights and pages."""
_SHARED_BYTES = 2 * _GIB
"""For Triton's tensors, and for what GPUs of one node tell each other; taken only as far as it is used."""


@dataclass(frozen=True)
class Asked:
    """What a health check asks: 200 is good."""

    port: str
    """Its name, one of the container's."""
    path: str


@dataclass(frozen=True)
class EngineContainer:
    """Everything about a container that serves one engine. Paths are the container's."""

    name: str
    """What clients call the model."""
    engine_id: str
    image: str
    entrypoint: tuple[str, ...]
    """Empty: the image's own, which is `roundhouse`."""
    arguments: tuple[str, ...]
    ports: Mapping[str, int]
    live: Asked
    """Whether the process answers."""
    ready: tuple[Asked, ...]
    """Whether requests may come; all of them must be good."""
    metrics: tuple[str, ...]
    """Names of ports that have ``/metrics``."""
    engine_bytes: int
    """Of the engine's files."""
    memory_bytes: int
    """Of the host's memory, to be kept for it."""
    gpus: int = 0
    compute_capability: str | None = None
    """Of the GPUs that it was compiled for, such as ``9.0``; None: any that the plan allows, or none."""
    shared_bytes: int = _SHARED_BYTES
    """Largest size of ``/dev/shm``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that it finds at these paths."""
    keyed: bool = True
    """Whether it takes ROUNDHOUSE_API_KEY."""

    @property
    def engine_folder(self) -> str:
        """Where it finds the engine: in its home, so that it is found by its id."""
        return f"{HOME}/engines/{self.engine_id}"


def container_of(engine: Engine, *, image: str | None = None, gpus_per_node: int = 8) -> EngineContainer:
    """How an engine is served in a container on one machine.

    Args:
        engine: the engine.
        image: None takes the name of the Dockerfile's stage.
        gpus_per_node: how many a machine has.

    Raises:
        UsageError: the engine takes more GPUs than one machine has.
    """
    plan, target = engine.manifest.plan, engine.manifest.recipe.target
    gpus = 0 if target == "torch" else plan.gpus
    if gpus > gpus_per_node:
        raise UsageError(
            f"engine {engine.manifest.id} takes {gpus} GPUs, and a machine has {gpus_per_node}",
            hint="A deployment over several machines is started by MPI: docs/deploy.md, 'Several nodes'.",
        )
    serve = ("serve", engine.manifest.id, "--host", "0.0.0.0")
    if target == "torch":
        return _own(
            engine,
            image=image or IMAGE,
            arguments=(*serve, "--kv-cache-bytes", str(plan.kv_bytes)),
            memory_bytes=plan.weight_bytes_per_gpu + plan.kv_bytes + _PROCESSES_BYTES,
        )
    compiled = engine.manifest.compiled
    return _own(
        engine,
        image=image or GPU_IMAGE,
        entrypoint=(_CONTAINER_ENTRY, _BESIDE_TENSORRT_LLM),
        arguments=serve,
        memory_bytes=engine.total_bytes + gpus * _PROCESSES_BYTES,  # engines pass through the host's memory
        gpus=gpus,
        compute_capability=compiled.compute_capability if compiled else None,
        shared_bytes=gpus * _SHARED_BYTES,
    )


def _own(
    engine: Engine,
    *,
    image: str,
    arguments: tuple[str, ...],
    memory_bytes: int,
    entrypoint: tuple[str, ...] = (),
    gpus: int = 0,
    compute_capability: str | None = None,
    shared_bytes: int = _SHARED_BYTES,
) -> EngineContainer:
    """A container that runs `roundhouse serve`: its front knows whether tokens come out, and whether steps are checked."""
    return EngineContainer(
        name=model_name(engine),
        engine_id=engine.manifest.id,
        image=image,
        entrypoint=entrypoint,
        arguments=arguments,
        ports=PORTS,
        live=Asked("openai", "/healthz"),
        ready=(Asked("openai", "/readyz"),),
        metrics=("metrics",),
        engine_bytes=engine.total_bytes,
        memory_bytes=memory_bytes,
        gpus=gpus,
        compute_capability=compute_capability,
        shared_bytes=shared_bytes,
    )
