"""Kubernetes manifests that serve one engine on one node."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundhouse.errors import UsageError

from .container import EngineContainer
from .dashboard import dashboard_text
from .pod import FILES, KEY, pod_spec
from .text import gib, yaml_text

__all__ = ["Manifests", "resource_name"]

_HOME, _DASHBOARD = "home", "dashboard"
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,46}[a-z0-9])?")
"""A label of DNS, with room for what is added to it."""
_LONGEST = 48
_HOME_BYTES = 10 * 2**30
"""For what is cached and logged beside the engine."""


@dataclass(frozen=True)
class Manifests:
    """What is applied for one engine.

    Args:
        container: how it is served.
        name: of the deployment; what belongs to it begins with it.
        namespace: None leaves it to whoever applies them.
        claim: an existing volume claim with a home in it; None makes one.

    Raises:
        UsageError: Kubernetes takes no such name.
    """

    container: EngineContainer
    name: str
    namespace: str | None = None
    claim: str | None = None

    def __post_init__(self) -> None:
        for each in (self.name, self.namespace, self.claim):
            if each is not None and not _NAME.fullmatch(each):
                raise UsageError(
                    f"Kubernetes takes no name like {each!r}",
                    hint=f"Up to {_LONGEST} small letters, digits and dashes, beginning with a letter, not ending with a dash.",
                )

    def text(self, folder: Path) -> str:
        """Everything as one file; the folder is the engine's on this machine."""
        return yaml_text(self.documents(), about=_about(self.container, folder, self.name, self.namespace))

    def documents(self) -> list[dict[str, Any]]:
        """Every document, in the order in which they are needed."""
        texts = {f"file-{at}": text for at, text in enumerate(self.container.files.values())}
        return [
            *([self._claim()] if self.claim is None else []),
            *([self._of("ConfigMap", FILES) | {"data": texts}] if texts else []),
            self._deployment(),
            self._clients(),
            *(self._scraped(port) for port in self.container.metrics),
            self._dashboard(),
        ]

    def _claim(self) -> dict[str, Any]:
        size = {"requests": {"storage": f"{gib(self.container.need.engine_bytes + _HOME_BYTES)}Gi"}}
        return self._of("PersistentVolumeClaim", _HOME) | {"spec": {"accessModes": ["ReadWriteOnce"], "resources": size}}

    def _deployment(self) -> dict[str, Any]:
        pod = {
            "metadata": {"labels": self._labels(), "annotations": {"roundhouse/engine": self.container.engine_id}},
            "spec": pod_spec(self.container, name=self.name, claim=self.claim or f"{self.name}-{_HOME}"),
        }
        # Recreated: GPUs, and a claim that one node may have, are free only when the old pod is gone.
        spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": self._labels()}, "template": pod}
        return self._of("Deployment", version="apps/v1") | {"spec": spec}

    def _clients(self) -> dict[str, Any]:
        return self._of("Service") | self._service(port for port in self.container.ports if port not in self.container.metrics)

    def _scraped(self, port: str) -> dict[str, Any]:
        """A service of its own for each port with metrics: the annotations name one port."""
        found = self._of("Service", port)
        found["metadata"]["annotations"] = {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(self.container.ports[port]),
            "prometheus.io/path": "/metrics",
        }
        return found | self._service([port])

    def _dashboard(self) -> dict[str, Any]:
        """Where Grafana's sidecar finds it."""
        found = self._of("ConfigMap", _DASHBOARD)
        found["metadata"]["labels"] |= {"grafana_dashboard": "1"}
        return found | {"data": {"roundhouse.json": dashboard_text()}}

    def _of(self, kind: str, part: str | None = None, *, version: str = "v1") -> dict[str, Any]:
        called = self.name if part is None else f"{self.name}-{part}"
        place = {} if self.namespace is None else {"namespace": self.namespace}
        return {"apiVersion": version, "kind": kind, "metadata": {"name": called, **place, "labels": self._labels()}}

    def _service(self, names: Iterable[str]) -> dict[str, Any]:
        ports = [{"name": name, "port": self.container.ports[name], "targetPort": name} for name in names]
        return {"spec": {"selector": self._labels(), "ports": ports}}

    def _labels(self) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": "roundhouse",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": "engine",
        }


def resource_name(name: str) -> str:
    """What a model's name becomes where Kubernetes wants names of its own."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    lettered = plain if plain[:1].isalpha() else f"engine-{plain}"
    return lettered[:_LONGEST].strip("-")


def _about(container: EngineContainer, folder: Path, name: str, namespace: str | None) -> str:
    of = "" if namespace is None else f" --namespace {namespace}"
    inside = f"kubectl exec{of} --stdin deployment/{name} --container engine --"
    arriving = f"{container.engine_folder.rsplit('/', 1)[0]}/.arriving"
    lines = [
        f"Serves engine {container.engine_id} as {container.name}; docs/deploy.md of Roundhouse tells how the image is made.",
        "After kubectl apply, and unless the volume has the engine already, bring it while the pod waits for it:",
        f"  {inside} mkdir -p {arriving}",
        f"  tar --create --directory {folder} . |",
        f"    {inside} tar --extract --directory {arriving}",
        f"  {inside} mv {arriving} {container.engine_folder}",
    ]
    if container.keyed:
        lines += [
            "API keys: make this secret, and the pod again:",
            f"  kubectl create secret generic{of} {name}-api-key --from-literal={KEY}=...",
        ]
    return "\n".join(lines)
