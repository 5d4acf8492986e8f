"""Engines that are exported, and what their golden files say; run it to write those anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from built import manifest_of
from shipped_plans import plan_of_shape

from roundhouse.build.compiled import Compiled
from roundhouse.build.engine import Engine, FileRecord
from roundhouse.build.planner.plan import Plan
from roundhouse.serve.export.compose import compose_text
from roundhouse.serve.export.container import container_of
from roundhouse.serve.export.dashboard import dashboard_text
from roundhouse.serve.export.kubernetes import Manifests, resource_name

__all__ = ["GOLDEN", "exported", "golden_texts"]

GOLDEN = Path(__file__).parents[2] / "golden" / "export"
_ENGINES = Path("/srv/roundhouse/engines")


def exported(name: str = "smollm2") -> Engine:
    """An engine of the table, as a build would leave it; no file of it is there."""
    shape, gpu, keys = _TABLE[name]
    plan = plan_of_shape(shape, gpu, name=name, **keys)
    folder = _ENGINES / f"{sum(name.encode()):016x}"
    manifest = manifest_of(
        folder.name,
        name,
        recipe=plan.recipe,
        plan=plan,
        compiled=_compiled(plan),
        files={"checkpoint/model.safetensors": FileRecord(bytes=plan.checkpoint_bytes, sha256="cd" * 32)},
    )
    return Engine(folder, manifest)


def golden_texts() -> dict[Path, str]:
    """Every golden file of the exports, as it should be."""
    found = {GOLDEN / "dashboard.json": dashboard_text()}
    for name in _TABLE:
        engine = exported(name)
        container = container_of(engine)
        found[GOLDEN / f"{name}.compose.yaml"] = compose_text(container, engine.folder)
        found[GOLDEN / f"{name}.kubernetes.yaml"] = Manifests(container, resource_name(name)).text(engine.folder)
    return found


def _compiled(plan: Plan) -> Compiled | None:
    if plan.recipe.target == "torch":
        return None
    return Compiled(
        versions={"tensorrt_llm": "1.2.1"},
        compute_capability=plan.hardware.compute_capability,
        tensor_parallel=plan.recipe.tensor_parallel,
        pipeline_parallel=plan.recipe.pipeline_parallel,
        guard=None,
        options={},
    )


_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "smollm2": ("smollm2-135m", "h200", {"target": "torch", "max_batch_size": 16, "max_seq_len": 2048}),
    "Llama-3.1-70B": ("llama-3.1-70b", "h200", {"target": "tensorrt", "tensor_parallel": 4}),
}
"""Shape, GPU and recipe keys, by the engine's name."""


if __name__ == "__main__":
    for path, text in golden_texts().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
