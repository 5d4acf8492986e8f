"""How the process of an engine is started, on one GPU and on several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roundhouse.serve.process.client import EngineProcess
from roundhouse.serve.runtimes.tensorrt_llm.launch import is_follower, launch_words


def manifest_of(tensor: int, pipeline: int, *, target: str = "tensorrt") -> dict[str, Any]:
    return {"recipe": {"target": target}, "compiled": {"tensor_parallel": tensor, "pipeline_parallel": pipeline}}


@pytest.mark.parametrize(
    "manifest",
    [{}, {"compiled": None}, {"compiled": {}}, [], "{", manifest_of(1, 1), manifest_of(8, 1, target="trtllm-pytorch")],
)
def test_one_rank_is_a_plain_process(tmp_path: Path, manifest: Any) -> None:
    (tmp_path / "engine.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
    assert launch_words(tmp_path, "python3") == ["python3", "-P"]


def test_a_folder_that_is_no_engine_is_told_by_the_process_itself(tmp_path: Path) -> None:
    assert launch_words(tmp_path / "missing", "python3") == ["python3", "-P"]


def test_several_ranks_are_started_together_and_end_together_and_use_all_cores(tmp_path: Path) -> None:
    (tmp_path / "engine.json").write_text(json.dumps(manifest_of(4, 2)))
    mpirun = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "8"]
    assert launch_words(tmp_path, "py") == [*mpirun, "py", "-P", "-m", "mpi4py"]


def test_the_owner_of_the_process_starts_it_like_that(tmp_path: Path) -> None:
    (tmp_path / "engine.json").write_text(json.dumps(manifest_of(2, 1)))
    command = EngineProcess(tmp_path, python="py")._starter._command
    assert command[:12] == [*launch_words(tmp_path, "py"), "-m", "roundhouse.serve.process.main"]


@pytest.mark.parametrize(
    ("environment", "follows"),
    [
        ({}, False),
        ({"OMPI_COMM_WORLD_RANK": "0"}, False),
        ({"OMPI_COMM_WORLD_RANK": "3"}, True),
        ({"PMI_RANK": "2"}, True),
        ({"OMPI_COMM_WORLD_RANK": "0", "PMI_RANK": "5"}, False),
    ],
)
def test_a_process_knows_whether_it_follows_by_what_mpi_tells_it(
    tmp_path: Path, environment: dict[str, str], follows: bool
) -> None:
    (tmp_path / "engine.json").write_text(json.dumps(manifest_of(4, 1)))
    assert is_follower(tmp_path, environment) is follows
    (tmp_path / "engine.json").write_text("{}")
    assert not is_follower(tmp_path, environment)
