"""The GPUs that a plan can be made for without having one (data in ``gpus.json``)."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from roundhouse.errors import UsageError

from ..hardware import Hardware, this_machine

__all__ = ["gpu_names", "hardware_called"]

_TAKEN_BY_DRIVER = round(2.31 * 2**30)
"""Bytes that driver and context take before anything is loaded: the difference logged once on an H200."""


def gpu_names() -> tuple[str, ...]:
    """Every GPU of the table."""
    return tuple(_table())


def hardware_called(name: str | None) -> Hardware:
    """The hardware a plan is for: this machine (None or ``cpu``), or one GPU of the table, by name or a part of it.

    Raises:
        UsageError: no GPU, or more than one, is called like this.
    """
    if name is None or name.lower() == "cpu":
        return this_machine()
    wanted = name.lower()
    matches = [gpu for gpu in _table() if gpu.lower() == wanted] or [gpu for gpu in _table() if wanted in gpu.lower()]
    if len(matches) != 1:
        lower = {gpu.lower(): gpu for gpu in _table()}
        near = matches or [lower[close] for close in difflib.get_close_matches(wanted, lower, cutoff=0.4)]
        raise UsageError(
            f"{name!r} is " + ("more than one GPU of the table" if matches else "not in the table of GPUs"),
            hint=f"Take one of {', '.join(near or _table())}, or cpu for this machine.",
        )
    return _planned(matches[0])


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


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files(__package__).joinpath("gpus.json").read_text())["gpus"]
    return table
