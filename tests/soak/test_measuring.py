"""The soak itself runs for an hour with `make soak`; what it judges by is held here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measuring import Memory, flatness_problem, name_of

MIB = 2**20


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/v/bin/tritonserver --model-repository=/r", "triton"),
        ("/b/triton_python_backend_stub /r/demo/1/model.py triton_shm", "stub demo"),
        ("/v/bin/python -P -m roundhouse.serve.process.main --engine /h/engines/ab12 --sockets /s", "engine ab12"),
        ("/v/bin/python -P -m pytest", None),
    ],
)
def test_processes_are_known_by_their_command_lines_however_much_of_them_is_there(command: str, name: str | None) -> None:
    parts = command.split(" ")
    assert name_of(parts) == name
    for length in range(len(parts)):
        assert name_of(parts[:length]) in (name, None)


@pytest.mark.parametrize(
    "series",
    [
        [100 * MIB] * 100,
        [10 * MIB] * 10 + [100 * MIB] * 90,  # warming up
        [100 * MIB] * 95 + [900 * MIB] + [100 * MIB] * 4,  # a moment's peak
        [300 * MIB] * 50 + [100 * MIB] * 50,  # less is well
        [100 * MIB],
    ],
)
def test_flat_memory_is_well(series: list[int]) -> None:
    assert flatness_problem("triton", series, most=8 * MIB) is None


def test_growth_is_named_with_its_size() -> None:
    series = [(100 + sample) * MIB for sample in range(100)]
    assert flatness_problem("triton", series, most=8 * MIB) == "triton grew from 125.0 to 195.0 MiB"


def test_the_summary_shows_what_is_compared() -> None:
    memory = Memory({"triton": [(100 + sample) * MIB for sample in range(100)]})
    assert memory.summary() == {"triton": {"warm": 125.0, "end": 195.0}}
