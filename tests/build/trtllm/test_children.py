"""Processes that are run on GPUs: what they say, and when they have ended."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from roundhouse.build.trtllm import children
from roundhouse.build.trtllm.children import Child, run_children
from roundhouse.errors import BuildError

LEAVES_ONE_BEHIND = """
import subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(left.pid, flush=True)
"""


def child(code: str, folder: Path, name: str = "rank 0") -> Child:
    return Child(name, [sys.executable, "-c", code], folder, os.environ)


def run(*each: Child, devices: tuple[str, ...] = ("0",)) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    run_children(each, devices, lambda name, line: said.append((name, line)))
    return said


def test_each_says_all_its_lines_on_the_device_that_it_has(tmp_path: Path) -> None:
    code = "import os; print('\\n'.join([os.environ['CUDA_VISIBLE_DEVICES']] * 1000))"
    said = run(*(child(code, tmp_path, f"rank {rank}") for rank in range(3)), devices=("4", "6"))
    for rank in range(3):
        lines = [line for name, line in said if name == f"rank {rank}"]
        assert len(lines) == 1000
        assert len(set(lines)) == 1
    assert {line for _, line in said} == {"4", "6"}


@pytest.mark.parametrize("code", ["", "raise SystemExit(3)"], ids=["well", "failed"])
def test_a_child_has_ended_when_its_process_has_whoever_still_holds_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(children, "_PATIENCE", 0.2)
    said: list[str] = []
    try:
        if code:
            with pytest.raises(BuildError, match=r"rank 0 failed \(exit code 3\)"):
                run_children([child(LEAVES_ONE_BEHIND + code, tmp_path)], ["0"], lambda _, line: said.append(line))
        else:
            run_children([child(LEAVES_ONE_BEHIND, tmp_path)], ["0"], lambda _, line: said.append(line))
        os.kill(int(said[0]), 0)  # it is still there
    finally:
        if said:
            os.kill(int(said[0]), signal.SIGKILL)
