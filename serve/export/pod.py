"""The pod of an engine: its container, what it waits for, and what it is asked."""

from __future__ import annotations

from typing import Any

from .container import HOME, PROBE, Asked, EngineContainer
from .text import gib

__all__ = ["FILES", "KEY", "pod_spec"]

FILES, KEY = "files", "key"
"""Names of volumes and keys that other documents give."""

_USER = 1000
_LONGEST_LOAD_S = 1800
_PERIOD_S = 10
_COMPUTE = "nvidia.com/gpu.compute"
"""Labels that NVIDIA's GPU feature discovery gives to nodes."""


def pod_spec(container: EngineContainer, *, name: str, claim: str) -> dict[str, Any]:
    """What stands under ``spec`` of a pod.

    Args:
        container: how the engine is served.
        name: of the deployment.
        claim: the volume claim that its home lies in.
    """
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # they would set variables that begin as ours do
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if container.need.compute_capability:
        major, _, minor = container.need.compute_capability.partition(".")
        spec["nodeSelector"] = {f"{_COMPUTE}.major": major, f"{_COMPUTE}.minor": minor}
    if container.need.gpus:
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    return spec | {
        "initContainers": [_waiting(container)],
        "containers": [_serving(container, name)],
        "volumes": _volumes(container, name, claim),
    }


def _waiting(container: EngineContainer) -> dict[str, Any]:
    """Waits until somebody has brought the engine, and hashes every file of it."""
    folder = container.engine_folder
    script = (
        f"until [ -f {folder}/engine.json ]; do\n"
        f'  echo "waiting for engine {container.engine_id}: bring it as the head of this manifest says"\n'
        "  sleep 10\n"
        "done\n"
        f"exec roundhouse engines verify {container.engine_id}\n"
    )
    return {
        "name": "engine",
        "image": container.image,
        "command": ["sh", "-c", script],
        "securityContext": _unprivileged(),
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}},
        "volumeMounts": [{"name": "home", "mountPath": HOME}],
    }


def _serving(container: EngineContainer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"name": "server", "image": container.image}
    if container.entrypoint:
        found["command"] = list(container.entrypoint)
    found |= {
        "args": list(container.arguments),
        "env": _environment(container, name),
        "ports": [{"name": port, "containerPort": number} for port, number in container.ports.items()],
        "startupProbe": _probe(container, failures=_LONGEST_LOAD_S // _PERIOD_S),
        "readinessProbe": _probe(container, failures=1),
        "livenessProbe": {
            "httpGet": {"port": container.live.port, "path": container.live.path},
            "periodSeconds": _PERIOD_S,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "securityContext": _unprivileged(),
        "resources": _resources(container),
        "volumeMounts": [
            {"name": "home", "mountPath": HOME},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
            *(
                {"name": FILES, "mountPath": path, "subPath": f"file-{at}", "readOnly": True}
                for at, path in enumerate(container.files)
            ),
        ],
    }
    return found


def _environment(container: EngineContainer, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"name": key, "value": value} for key, value in container.environment.items()]
    if container.keyed:
        secret = {"name": f"{name}-api-key", "key": KEY, "optional": True}
        found.append({"name": "ROUNDHOUSE_API_KEY", "valueFrom": {"secretKeyRef": secret}})
    return found


def _probe(container: EngineContainer, *, failures: int) -> dict[str, Any]:
    """One question is asked by the kubelet; a probe can ask no more than one, so several are asked by our own."""
    if len(container.ready) == 1:
        (asked,) = container.ready
        how: dict[str, Any] = {"httpGet": {"port": asked.port, "path": asked.path}}
    else:
        urls = [_url(container, asked) for asked in container.ready]
        how = {"exec": {"command": [*PROBE, *urls]}}
    return {**how, "periodSeconds": _PERIOD_S, "timeoutSeconds": _PERIOD_S, "failureThreshold": failures}


def _url(container: EngineContainer, asked: Asked) -> str:
    return f"http://127.0.0.1:{container.ports[asked.port]}{asked.path}"


def _resources(container: EngineContainer) -> dict[str, Any]:
    memory = f"{gib(container.need.memory_bytes)}Gi"
    if not container.need.gpus:
        # Without a limit of its own it would take the node's memory for its own, and a neighbour's need for room.
        return {"requests": {"cpu": "2", "memory": memory}, "limits": {"memory": memory}}
    return {
        "requests": {"cpu": str(4 * container.need.gpus), "memory": memory},
        "limits": {"nvidia.com/gpu": str(container.need.gpus)},
    }


def _unprivileged() -> dict[str, Any]:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _volumes(container: EngineContainer, name: str, claim: str) -> list[dict[str, Any]]:
    shared = {"medium": "Memory", "sizeLimit": f"{gib(container.need.shared_bytes)}Gi"}
    found: list[dict[str, Any]] = [
        {"name": "home", "persistentVolumeClaim": {"claimName": claim}},
        {"name": "shared-memory", "emptyDir": shared},
    ]
    if container.files:
        found.append({"name": FILES, "configMap": {"name": f"{name}-{FILES}"}})
    return found
