"""The GPUs that a plan can be made for without having one (data in ``gpus.json``)."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from typing import Any

from roundhouse.errors import UsageError

from ..hardware import Hardware, this_machine
from ..recipe import Recipe

__all__ = ["gpu_names", "hardware_called", "local_gpu"]

_TAKEN_BY_DRIVER = round(2.31 * 2**30)
"""Bytes that driver and context take before anything is loaded: the difference logged once on an H200."""


def gpu_names() -> tuple[str, ...]:
    """Every GPU of the table."""
    return tuple(_table())


def hardware_called(name: str | None, recipe: Recipe | None = None) -> Hardware:
    """The hardware a plan is for.

    Args:
        name: a GPU of the table, by name or a part of it; ``local`` for this machine's GPU, ``cpu`` for its CPU; None
            for the GPU when the recipe's target needs one and there is one, else the CPU.
        recipe: whose target decides when there is no name.

    Raises:
        UsageError: no GPU, or more than one, is called like this; or this machine has none.
    """
    wanted = "" if name is None else name.lower()
    if wanted == "cpu":
        return this_machine()
    if wanted in ("", "local"):
        found = local_gpu() if wanted or (recipe is not None and recipe.target != "torch") else None
        if found is None and wanted:
            raise UsageError("this machine has no NVIDIA GPU that nvidia-smi shows", hint="Name one of the table, or cpu.")
        return found or this_machine()
    matches = _matches(wanted)
    if len(matches) != 1:
        lower = {gpu.lower(): gpu for gpu in _table()}
        near = matches or [lower[close] for close in difflib.get_close_matches(wanted, lower, cutoff=0.4)]
        raise UsageError(
            f"{name!r} is " + ("more than one GPU of the table" if matches else "not in the table of GPUs"),
            hint=f"Take one of {', '.join(near or _table())}, or cpu for this machine.",
        )
    return _planned(matches[0])


def _matches(wanted: str) -> list[str]:
    """GPUs that are called so; else whose name begins so; else whose name holds it."""
    names = {gpu: gpu.lower() for gpu in _table()}
    for fits in (str.__eq__, str.startswith, str.__contains__):
        if found := [gpu for gpu, name in names.items() if fits(name, wanted)]:
            return found
    return []


def _planned(name: str) -> Hardware:
    gpu = _table()[name]
    total = gpu["memory_mib"] << 20
    return Hardware(
        name=name,
        kind="cuda",
        cores=0,
        total_memory=total,
        free_memory=total - _TAKEN_BY_DRIVER if "free_gib" not in gpu else round(gpu["free_gib"] * 2**30),
        native_bf16=True,
        compute_capability=gpu["compute_capability"],
        bandwidth=gpu["bandwidth_bytes_per_s"],
        unverified=tuple(gpu["unverified"]),
    )


def local_gpu() -> Hardware | None:
    """The first NVIDIA GPU of this machine as ``nvidia-smi`` shows it, with what the table knows of it, or None."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    query = [command, "--query-gpu=name,memory.total,memory.free,compute_cap", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
        name, total, free, capability = (part.strip() for part in answer.splitlines()[0].split(","))
        memory = int(total) << 20, int(free) << 20
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    known: dict[str, Any] = next((gpu for gpu in _table().values() if name in gpu["smi_names"]), {})
    return Hardware(
        name=name,
        kind="cuda",
        cores=0,
        total_memory=memory[0],
        free_memory=memory[1],
        native_bf16=True,
        compute_capability=capability,
        bandwidth=known.get("bandwidth_bytes_per_s"),
    )


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("gpus.json").read_text())["gpus"]
    return table
