"""The GPUs that a plan can be made for without having one (data in ``gpus.json``)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from typing import Any

from roundhouse.errors import UsageError

from ..hardware import Hardware, this_machine
from ..recipe import Recipe

__all__ = ["gpu_names", "hardware_called", "hardware_here", "local_gpu", "same_device"]

_TAKEN_BY_DRIVER = round(2.31 * 2**30)
"""Bytes that driver and context take before anything is loaded: the difference logged once on an H200."""


def gpu_names() -> tuple[str, ...]:
    """Every GPU of the table."""
    return tuple(_table())


def hardware_called(name: str | None, recipe: Recipe | None = None) -> Hardware:
    """The hardware a plan is for.

    Args:
        name: a GPU of the table, by whole words of its name (``h200``, ``h100 nvl``); ``local`` for this machine's GPU,
            ``cpu`` for its CPU; None for the GPU when the recipe's target needs one and there is one, else the CPU.
        recipe: whose target decides when there is no name.

    Raises:
        UsageError: no GPU, or more than one, is called like this; or this machine has none.
    """
    if name is None:
        return (hardware_here(recipe) if recipe is not None else None) or this_machine()
    wanted = name.strip().lower()
    if wanted == "cpu":
        return this_machine()
    if wanted == "local":
        found = local_gpu()
        if found is None:
            raise UsageError("this machine has no NVIDIA GPU that nvidia-smi shows", hint="Name one of the table, or cpu.")
        return found
    matches = [gpu for gpu in _table() if _names(gpu, wanted)]
    if len(matches) != 1:
        kind = "more than one GPU of the table" if matches else "not in the table of GPUs"
        hint = f"Take one of {', '.join(matches)}." if matches else f"The table has {', '.join(_table())}."
        raise UsageError(f"{name!r} is {kind}", hint=f"{hint} `local` is this machine's, `cpu` its CPU.")
    return _planned(matches[0])


def _names(gpu: str, wanted: str) -> bool:
    """Whether ``wanted`` is made of whole words of a GPU's name, in their order: ``h200``, ``NVIDIA H100 SXM``, ``rtx4090``."""
    words = re.split(r"[^a-z0-9]+", gpu.lower())
    text = re.sub(r"[^a-z0-9]+", "", wanted.removeprefix("nvidia"))
    spelled = {""}
    for word in words:
        spelled |= {before + word for before in spelled}
    return bool(text) and text in spelled


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


def hardware_here(recipe: Recipe) -> Hardware | None:
    """What an engine of this recipe runs on here: the CPU, or the GPU where its target needs one; None when there is none."""
    return this_machine() if recipe.target == "torch" else local_gpu()


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


def same_device(one: Hardware, other: Hardware) -> bool:
    """Whether two are the same kind of device, be one of them called as the table does and the other as the machine does."""
    return (one.kind, one.cores, _table_name(one.name)) == (other.kind, other.cores, _table_name(other.name))


def _table_name(name: str) -> str:
    return next((known for known, gpu in _table().items() if name in gpu["smi_names"]), name)


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("gpus.json").read_text())["gpus"]
    return table
