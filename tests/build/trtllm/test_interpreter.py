"""TensorRT-LLM's Python, with its twin: what is found in it, and what its processes get of this one's environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from trtllm_machine import TrtllmMachine, trtllm_machine

from roundhouse.build.trtllm.interpreter import environment, find_installation
from roundhouse.errors import SetupError


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrtllmMachine:
    return trtllm_machine(tmp_path, monkeypatch)


def test_a_child_is_no_rank_of_the_job_that_this_process_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of MPI are the ones that upstream's Triton model `llmapi` drops.
    of_the_job = (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_UNIVERSE_SIZE",
        "OMPI_FIRST_RANKS",
        "OMPI_APP_CTX_NUM_PROCS",
        "OMPI_MCA_orte_precondition_transports",
        "ORTE_SCHIZO_DETECTION",
        "PMIX_RANK",
        "PMIX_SERVER_URI21",
        "PMIX_GDS_MODULE",
        "PMI_FD",
        "SLURM_PROCID",
    )
    of_the_user = ("OMPI_MCA_btl", "PMIX_MCA_gds", "OMPI_ALLOW_RUN_AS_ROOT", "NCCL_DEBUG", "HF_HOME")
    for name in (*of_the_job, *of_the_user):
        monkeypatch.setenv(name, "1")
    given = environment(ADDED="2")
    assert [name for name in of_the_job if name in given] == []
    assert {name: given[name] for name in (*of_the_user, "ADDED")} == dict.fromkeys(of_the_user, "1") | {"ADDED": "2"}


def test_another_python_does_not_read_this_ones_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorrt_llm.py").write_text("__version__ = '9.9.9'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    assert {"PYTHONPATH", "VIRTUAL_ENV"}.isdisjoint(environment())
    assert find_installation("tensorrt").version == "1.2.1"
    monkeypatch.delenv("ROUNDHOUSE_TRTLLM_PYTHON")
    assert environment()["PYTHONPATH"] == str(tmp_path)  # this Python's own


def test_a_version_without_engines_says_so_though_it_has_no_tensorrt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWIN_TENSORRT_MISSING", "1")
    with pytest.raises(SetupError, match=r"has no TensorRT that can be imported: ModuleNotFoundError: .*'tensorrt'"):
        find_installation("tensorrt")
    monkeypatch.setenv("TWIN_VERSION", "1.3.0")
    with pytest.raises(SetupError, match=r"has no engine path .* use the target trtllm-pytorch"):
        find_installation("tensorrt")
    found = find_installation("trtllm-pytorch")
    assert (found.version, found.tensorrt) == ("1.3.0", "")
    monkeypatch.setenv("TWIN_IMPORT_FAILS", "1")
    with pytest.raises(SetupError, match=r"has no TensorRT-LLM that can be imported: ImportError: libth_common\.so"):
        find_installation("trtllm-pytorch")
