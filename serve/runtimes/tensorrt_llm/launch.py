"""How the process of an engine with several ranks is started, and how each knows which rank it is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["is_follower", "launch_words"]

_MANIFEST = "engine.json"
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Where Open MPI and MPICH tell a process its rank."""


def launch_words(engine: Path, python: str) -> list[str]:
    """What the command of an engine process begins with, before ``-m`` and its module.

    ``mpirun`` hands its input to rank 0, so that all ranks end when the parent's end of the pipe closes; ``-m mpi4py`` ends all
    of them when one fails.

    Args:
        engine: its folder. One that cannot be read is told by the process itself.
        python: the interpreter.
    """
    ranks, plain = _ranks(engine), [python, "-P"]
    if ranks == 1:
        return plain
    # Open MPI binds a rank to a core, and all threads of its scheduler, its sockets and CUDA's would share that one.
    return ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", str(ranks), *plain, "-m", "mpi4py"]


def is_follower(engine: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is another rank than the first of an engine with several.

    Args:
        engine: its folder. An engine of one rank has no others, whatever MPI started beside it.
        environment: of the process.
    """
    told = (environment[name] for name in _RANK if name in environment)
    return next(told, "0") != "0" and _ranks(engine) > 1


def _ranks(engine: Path) -> int:
    """As the manifest says; it is read as plain JSON, for Triton's stub asks as well."""
    try:
        manifest = json.loads((engine / _MANIFEST).read_text(encoding="utf-8"))
        compiled = manifest["compiled"]
        ranks = int(compiled["tensor_parallel"]) * int(compiled["pipeline_parallel"])
        return ranks if manifest["recipe"]["target"] == "tensorrt" else 1
    except (OSError, ValueError, KeyError, TypeError):
        return 1
