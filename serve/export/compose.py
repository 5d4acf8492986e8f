"""A Compose file that serves one engine on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .container import HOME, PROBE, EngineContainer
from .text import gib, yaml_text

__all__ = ["compose_text", "service_name"]

_LONGEST_LOAD_S = 1800


def compose_text(container: EngineContainer, folder: Path) -> str:
    """The file.

    Args:
        container: how the engine is served.
        folder: the engine's, on the machine that runs this.
    """
    name = service_name(container.name)
    document = {
        "name": name,
        "services": {"engine": _service(container, folder)},
        "volumes": {"home": {}},
    }
    if container.files:
        document["configs"] = {f"file-{at}": {"content": _plain(text)} for at, text in enumerate(container.files.values())}
    return yaml_text([document], about=_about(container, folder))


def service_name(name: str) -> str:
    """A name as Compose takes it for a project."""
    return re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_") or "engine"


def _about(container: EngineContainer, folder: Path) -> str:
    ports = ", ".join(f"{name} {number}" for name, number in container.ports.items())
    keys = "Only the front asks for keys" if container.keyed else "None of them asks for a key"
    return (
        f"Serves engine {container.engine_id} as {container.name}, from {folder}.\n"
        "  docker compose --file THIS up --detach --wait\n"
        "docs/deploy.md of Roundhouse tells how the image is made.\n"
        f"Ports, on 127.0.0.1: {ports}. {keys}: keep them local, or put what does before them."
    )


def _service(container: EngineContainer, folder: Path) -> dict[str, Any]:
    service: dict[str, Any] = {"image": container.image}
    if container.entrypoint:
        service["entrypoint"] = list(container.entrypoint)
    service |= {
        "command": [_plain(word) for word in container.arguments],
        "init": True,
        "restart": "unless-stopped",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "shm_size": f"{gib(container.need.shared_bytes)}gb",
        "environment": _environment(container),
        "ports": [f"127.0.0.1:{number}:{number}" for number in container.ports.values()],
        "volumes": [
            f"home:{HOME}",
            {
                "type": "bind",
                "source": _plain(str(folder)),
                "target": container.engine_folder,
                "read_only": True,
                "bind": {"create_host_path": False},
            },
        ],
    }
    if container.files:
        service["configs"] = [{"source": f"file-{at}", "target": path} for at, path in enumerate(container.files)]
    if container.need.gpus:
        service["ulimits"] = {"memlock": -1, "stack": 67108864}
        device = {"driver": "nvidia", "count": container.need.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    urls = [f"http://127.0.0.1:{container.ports[asked.port]}{asked.path}" for asked in container.ready]
    service["healthcheck"] = {
        "test": ["CMD", *PROBE, *urls],
        "interval": "10s",
        "timeout": "10s",
        "retries": 3,
        "start_period": f"{_LONGEST_LOAD_S}s",
        "start_interval": "5s",
    }
    return service


def _environment(container: EngineContainer) -> dict[str, str]:
    key = {"ROUNDHOUSE_API_KEY": "${ROUNDHOUSE_API_KEY:-}"} if container.keyed else {}
    return {**{name: _plain(value) for name, value in container.environment.items()}, **key}


def _plain(text: str) -> str:
    """A text in which Compose puts nothing else for a dollar sign."""
    return text.replace("$", "$$")
