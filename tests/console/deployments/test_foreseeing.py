"""What is said of a deployment before anything is started."""

from __future__ import annotations

from roundhouse.build.compiled import Compiled
from roundhouse.build.engine import Engine
from roundhouse.build.hardware import Hardware
from roundhouse.console.deployments.foreseeing import foresee
from roundhouse.serve.settings import Overrides

SMALL = Hardware(name="a small host", kind="cpu", cores=2, total_memory=2000, free_memory=1000)


def test_an_engine_of_the_torch_target_must_fit_the_host(tiny_engine: Engine) -> None:
    foreseen = foresee(tiny_engine.manifest.model_dump(mode="json"), Overrides(), SMALL)
    assert "exceed the 2,000 B of free memory" in str(foreseen.problem)


def test_a_compiled_engine_does_not_take_the_host_s_memory(tiny_engine: Engine) -> None:
    """But that of its GPUs, which is looked at when it is started."""
    compiled = Compiled(
        versions={"tensorrt_llm": "1.2.1"},
        compute_capability="9.0",
        tensor_parallel=1,
        pipeline_parallel=1,
        guard=None,
        options={},
    )
    recipe = tiny_engine.manifest.recipe.model_copy(update={"target": "tensorrt"})
    manifest = tiny_engine.manifest.model_copy(update={"compiled": compiled, "recipe": recipe})
    foreseen = foresee(manifest.model_dump(mode="json"), Overrides(), SMALL)
    assert foreseen.problem is None
    assert foreseen.memory is None
    assert foreseen.settings is not None
    assert foreseen.settings.kv.bytes < manifest.plan.hardware.free_memory
