"""How an engine is served in a container, whoever runs that: image, command, files, ports, and what to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CONTAINER_ENTRY", "GPU_IMAGE", "HOME", "IMAGE", "PROBE", "Asked", "EngineContainer", "Need"]

IMAGE, GPU_IMAGE = "roundhouse:cpu", "roundhouse:gpu"
"""What the Dockerfile's stages are called when nobody names a registry."""
HOME = "/home/roundhouse/data"
"""Where the images keep their home."""
CONTAINER_ENTRY = "/opt/nvidia/nvidia_entrypoint.sh"
"""Sets NVIDIA's containers up for the driver of the machine, and then runs its arguments."""
PROBE = ("/opt/roundhouse/venv/bin/python", "-P", "-m", "roundhouse.serve.probe")
"""Asks several servers at once, before URLs. By its path: in the gpu image the first Python on PATH is TensorRT-LLM's."""


@dataclass(frozen=True)
class Asked:
    """What a health check asks: 200 is good."""

    port: str
    """Its name, one of the container's."""
    path: str


@dataclass(frozen=True)
class Need:
    """What a container takes of a machine."""

    engine_bytes: int
    """Of the engine's files."""
    memory_bytes: int
    """Of the host's memory, to be kept for it."""
    shared_bytes: int
    """Largest size of ``/dev/shm``."""
    gpus: int = 0
    compute_capability: str | None = None
    """Of the GPUs that it was compiled for, such as ``9.0``; None: any that the plan allows, or none."""


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
    need: Need
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that it finds at these paths."""
    keyed: bool = True
    """Whether it takes ROUNDHOUSE_API_KEY."""

    @property
    def engine_folder(self) -> str:
        """Where it finds the engine: in its home, so that it is found by its id."""
        return f"{HOME}/engines/{self.engine_id}"
