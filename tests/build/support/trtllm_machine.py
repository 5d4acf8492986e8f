"""A machine with GPUs and TensorRT-LLM, as far as a build sees it: `nvidia-smi` by a script, TensorRT-LLM by its twin."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["TWIN", "TrtllmMachine", "trtllm_machine"]

TWIN = Path(__file__).parent / "trtllm_twin"


@dataclass(frozen=True)
class TrtllmMachine:
    """Where its programs lie."""

    folder: Path

    def put_nvidia_smi(self, *, capability: str = "9.0", devices: int = 2) -> None:
        """A program that answers as nvidia-smi does."""
        gpu = f"NVIDIA H100 80GB HBM3, 81559, 81000, {capability}"
        indices = "\\n".join(map(str, range(devices)))
        program = self.folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncase $1 in *index*) printf '{indices}\\n';; *) echo '{gpu}';; esac\n")
        program.chmod(0o755)


def trtllm_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> TrtllmMachine:
    """Two H100s, TensorRT-LLM's twin in a Python of its own, and a library of the guard."""
    place = folder / "machine"
    place.mkdir()
    machine = TrtllmMachine(place)
    machine.put_nvidia_smi()
    (place / "libroundhouse_kv_page_guard.so").write_bytes(b"")
    monkeypatch.setenv("PATH", str(place), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # A Python whose packages are its own, and the twin.
    python = place / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{TWIN}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("ROUNDHOUSE_TRTLLM_PYTHON", str(python))
    monkeypatch.setenv("ROUNDHOUSE_GUARD_PLUGIN", str(place / "libroundhouse_kv_page_guard.so"))
    return machine
