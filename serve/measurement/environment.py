"""Where something is measured: the machine, versions of what matters to speed, and how idle it was."""

from __future__ import annotations

import platform
import socket
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from roundhouse import __version__
from roundhouse.build.planner.gpus import hardware_here
from roundhouse.build.recipe import Recipe

from .about import Environment
from .gpus import Gpus
from .processes import Family, look

__all__ = ["environment_elsewhere", "environment_of"]

_PACKAGES = ("torch", "numpy", "transformers", "tokenizers", "nvidia-pytriton", "tensorrt-llm")
_IDLE_S = 1.0


def environment_of(recipe: Recipe | None, gpus: Gpus, families: Sequence[Family] | None, stop: threading.Event) -> Environment:
    """Of whoever is asked on this machine. Takes a second, in which others are watched.

    Args:
        recipe: of an engine that runs with our packages; its target says whether the GPU or the CPU is its hardware. None for
            a server of which we know neither packages nor hardware.
        gpus: of this machine.
        families: processes of the subject that we have not started; None when they cannot be told from others'.
        stop: cuts that second short.
    """
    idle = None
    if families is not None:
        before = look(families)
        stop.wait(_IDLE_S)
        idle = before.others(look(families))
    return Environment(
        host=socket.gethostname(),
        hardware=None if recipe is None else hardware_here(recipe),
        gpus=gpus.names,
        driver=gpus.driver,
        versions=_client_versions() if recipe is None else _versions(),
        idle_cores=idle,
    )


def environment_elsewhere() -> Environment:
    """Of an endpoint on another machine, of which nothing is known."""
    return Environment(host=socket.gethostname(), hardware=None, versions=_client_versions())


def _client_versions() -> dict[str, str]:
    """Of who asked, called so that nobody takes them for the server's."""
    return {"roundhouse (client)": __version__, "python (client)": platform.python_version()}


def _versions() -> dict[str, str]:
    found = {"roundhouse": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
