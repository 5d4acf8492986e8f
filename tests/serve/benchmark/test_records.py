"""What a run says that it ran on: what is known of it, never what else the machine has."""

from __future__ import annotations

import pytest
from benchmark_runs import CPU, made_header

from roundhouse.serve.measurement.about import Environment, Subject

H200 = CPU.model_copy(update={"name": "NVIDIA H200", "kind": "cuda", "cores": 0})
ALL = ("NVIDIA H200",) * 8


def engine(**recipe: int) -> Subject:
    return Subject(kind="engine", name="x", model="x", manifest={"recipe": recipe})


def endpoint(server: str | None) -> Subject:
    return Subject(kind="endpoint", name="x", model="x", server=server)


@pytest.mark.parametrize(
    ("subject", "hardware", "gpus", "says"),
    [
        (engine(tensor_parallel=1), CPU, ALL, "Some CPU"),
        (engine(tensor_parallel=2), CPU, ALL, "Some CPU"),
        (engine(tensor_parallel=1, pipeline_parallel=1), H200, ALL, "NVIDIA H200"),
        (engine(tensor_parallel=4, pipeline_parallel=2), H200, (), "8×NVIDIA H200"),
        (engine(), H200, ALL, "NVIDIA H200"),
        (endpoint("vLLM on 2×H200"), None, ALL, "vLLM on 2×H200"),
        (endpoint(None), None, (*ALL, "NVIDIA L4"), "NVIDIA H200, NVIDIA L4"),
        (endpoint(None), None, (), None),
    ],
)
def test_a_run_ran_on_what_is_known_of_it(subject: Subject, hardware: object, gpus: tuple[str, ...], says: str | None) -> None:
    environment = Environment.model_validate({"host": "here", "hardware": hardware, "gpus": gpus, "versions": {}})
    assert made_header(subject=subject, environment=environment).ran_on == says
