from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from roundhouse.build import hardware
from roundhouse.build.hardware import this_machine, usable_cores

MIB = 1 << 20


def test_a_containers_limit_counts_less_what_it_already_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, used = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text(f"{400 * MIB}\n")
    used.write_text(f"{300 * MIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon {200 * MIB}\ninactive_file {60 * MIB}\n")
    monkeypatch.setattr(hardware, "_CGROUP_FILES", ((limit, used),))
    machine = this_machine()
    assert machine.total_memory == 400 * MIB
    assert machine.free_memory == 160 * MIB  # 400 − 300 + 60 that the kernel gives back


def test_a_container_without_a_limit_has_the_machines_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    monkeypatch.setattr(hardware, "_CGROUP_FILES", ((limit, tmp_path / "memory.current"),))
    assert this_machine().total_memory > 400 * MIB


def test_the_cpu_has_a_name_and_cores() -> None:
    machine = this_machine()
    assert machine.name
    assert machine.cores >= 1


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("max 100000", 64), ("900000 100000", 9), (None, 64)],
)
def test_cores_are_no_more_than_a_container_has_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str | None, cores: int
) -> None:
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: list(range(64)))
    monkeypatch.setattr(hardware, "_CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(hardware, "_CPU_QUOTA_V1", (tmp_path / "quota", tmp_path / "period"))
    if quota is not None:
        (tmp_path / "cpu.max").write_text(quota + "\n")
    assert usable_cores() == this_machine().cores == cores


@pytest.mark.parametrize(("quota", "cores"), [("300000", 3), ("-1", 64)])
def test_older_containers_say_it_in_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, cores: int) -> None:
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: list(range(64)))
    files = tmp_path / "quota", tmp_path / "period"
    monkeypatch.setattr(hardware, "_CPU_QUOTA", tmp_path / "absent")
    monkeypatch.setattr(hardware, "_CPU_QUOTA_V1", files)
    for file, text in zip(files, (quota, "100000"), strict=True):
        file.write_text(text + "\n")
    assert usable_cores() == cores
