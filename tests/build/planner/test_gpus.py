from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.planner.gpus import gpu_names, hardware_called, hardware_here, local_gpu, same_device
from roundhouse.build.recipe import recipe_from
from roundhouse.errors import UsageError


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program on PATH that answers as nvidia-smi does."""

    def put(answer: str, code: int = 0) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return put


def test_every_gpu_of_the_table_can_be_planned_for() -> None:
    for name in gpu_names():
        gpu = hardware_called(name)
        assert (gpu.name, gpu.kind) == (name, "cuda")
        assert 0 < gpu.free_memory < gpu.total_memory
        assert gpu.compute_capability
        assert gpu.bandwidth


def test_what_was_logged_as_free_is_taken_as_it_was() -> None:
    assert hardware_called("H200-SXM").free_memory == round(138.09 * 2**30)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("h200", "H200-SXM"),
        ("B200", "B200-SXM"),
        ("gb200", "GB200"),
        ("4090", "RTX-4090"),
        ("rtx4090", "RTX-4090"),
        ("RTX 4090", "RTX-4090"),
        ("NVIDIA H200", "H200-SXM"),
        ("h100nvl", "H100-NVL-94"),
        ("h100-sxm", "H100-80-SXM"),
        ("rtx-pro-6000", "RTX-PRO-6000-BW"),
    ],
)
def test_whole_words_of_a_name_are_enough(words: str, name: str) -> None:
    assert hardware_called(words).name == name


@pytest.mark.parametrize("other", ["h20", "l4", "a10", "b20", "h2", "200", "mi300", "", " ", "sxm4"])
def test_a_gpu_that_is_not_in_the_table_never_becomes_another_one(other: str) -> None:
    with pytest.raises(UsageError) as refused:
        hardware_called(other)
    assert "H200-SXM" in str(refused.value)


def test_a_name_of_several_gpus_lists_them() -> None:
    with pytest.raises(UsageError, match="more than one") as refused:
        hardware_called("h100")
    assert "H100-80-SXM, H100-NVL-94" in str(refused.value)


def test_the_cpu_is_the_default_and_can_be_named() -> None:
    assert hardware_called(None).kind == hardware_called("cpu").kind == "cpu"


def test_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert local_gpu() is None
    with pytest.raises(UsageError, match="no NVIDIA GPU"):
        hardware_called("local")


def test_this_machines_gpu_is_what_nvidia_smi_shows(nvidia_smi) -> None:
    nvidia_smi("NVIDIA H200, 143771, 143162, 9.0\nNVIDIA H200, 143771, 1000, 9.0")
    gpu = hardware_called("local")
    assert (gpu.name, gpu.compute_capability) == ("NVIDIA H200", "9.0")
    assert (gpu.total_memory, gpu.free_memory) == (143771 << 20, 143162 << 20)
    assert gpu.bandwidth == hardware_called("h200").bandwidth


def test_a_gpu_that_the_table_does_not_know_has_no_speed(nvidia_smi) -> None:
    nvidia_smi("NVIDIA Something, 1000, 900, 9.0")
    gpu = local_gpu()
    assert gpu is not None
    assert gpu.bandwidth is None


def test_the_recipes_target_decides_when_no_gpu_is_named(nvidia_smi) -> None:
    nvidia_smi("NVIDIA L40S, 46068, 45000, 8.9")
    assert hardware_called(None, recipe_from({"model": "m", "target": "tensorrt"})).name == "NVIDIA L40S"
    assert hardware_called(None, recipe_from({"model": "m"})).kind == "cpu"
    here = [hardware_here(recipe_from({"model": "m", "target": target})) for target in ("tensorrt", "torch")]
    assert [each and each.kind for each in here] == ["cuda", "cpu"]


def test_an_engine_that_needs_a_gpu_has_no_hardware_where_there_is_none(nvidia_smi) -> None:
    nvidia_smi("", 6)
    assert hardware_here(recipe_from({"model": "m", "target": "tensorrt"})) is None


def test_a_gpu_is_one_device_under_both_of_its_names(nvidia_smi) -> None:
    nvidia_smi("NVIDIA H200, 143771, 143162, 9.0")
    here = hardware_called("local")
    assert same_device(here, hardware_called("h200"))
    assert not same_device(here, hardware_called("b200"))
    assert not same_device(here, hardware_called("cpu"))


@pytest.mark.parametrize(("answer", "code"), [("", 0), ("no devices were found", 6), ("a, b, c, d", 0), ("NVIDIA H200", 0)])
def test_an_nvidia_smi_that_shows_nothing_is_no_gpu(nvidia_smi, answer: str, code: int) -> None:
    nvidia_smi(answer, code)
    assert local_gpu() is None
