from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build import hardware
from roundhouse.build.hardware import this_machine

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
