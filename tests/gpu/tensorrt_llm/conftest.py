"""TensorRT-LLM on this machine's GPU, or the reason why there is none; and engines that are built once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpu_runs import Workbench

from roundhouse.build.recipe import Target
from roundhouse.build.trtllm.host import devices_here
from roundhouse.build.trtllm.interpreter import find_installation
from roundhouse.errors import SetupError

Built = Callable[..., Any]

SIZES = ("max_batch_size=16", "max_seq_len=1024", "page_tokens=32")


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """The environment that plans, quantizes and runs the torch target."""
    return Workbench(tmp_path_factory.mktemp("gpu") / "home")


@pytest.fixture(scope="session")
def theirs(ours: Workbench) -> Callable[[Target], Workbench]:
    """The Python that has TensorRT-LLM, with the same home."""

    def find(target: Target) -> Workbench:
        if not devices_here():
            pytest.skip("no NVIDIA GPU is seen")
        try:
            return Workbench(ours.home, str(find_installation(target).python))
        except SetupError as error:
            pytest.skip(f"{error.message} {error.hint or ''}".strip())

    return find


@pytest.fixture(scope="session")
def built(ours: Workbench, theirs: Callable[[Target], Workbench]) -> Built:
    """Build SmolLM2 for a target; the same recipe is built once. Answers what `build --json` does."""
    made: dict[tuple[str, ...], Any] = {}

    def build(target: Target, weights: str, kv: str) -> Any:
        if target != "torch":
            theirs(target)
        key = (target, weights, kv)
        if key not in made:
            options = ["--target", target, "--weights", weights, "--kv", kv, "--name", "-".join(key)]
            made[key] = ours.roundhouse(
                "build", "demo:smollm2", *options, *(word for size in SIZES for word in ("--set", size))
            )
        return made[key]

    return build


@pytest.fixture(params=[("bf16", "bf16"), ("fp8", "fp8"), ("int4_awq", "fp8")], ids="-".join, scope="session")
def formats(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Weights and KV cache."""
    pair: tuple[str, str] = request.param
    return pair


@pytest.fixture(scope="session")
def engine(built: Built, formats: tuple[str, str]) -> Path:
    """A TensorRT engine's folder."""
    return Path(built("tensorrt", *formats)["folder"])


@pytest.fixture(scope="session")
def torch_answers(ours: Workbench, built: Built, formats: tuple[str, str]) -> Any:
    """What the torch target makes of the prompts with the same weights and the same KV format."""
    return ours.prompts(Path(built("torch", *formats)["folder"]))
