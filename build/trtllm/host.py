"""Whether this machine builds, or runs, an engine of TensorRT-LLM: its version, its GPUs and how many there are."""

from __future__ import annotations

import os
import shutil
import subprocess

from roundhouse.errors import EngineError, SetupError

from ..compiled import Compiled
from ..hardware import Hardware
from ..planner.gpus import local_gpu
from .interpreter import Installation

__all__ = ["devices_here", "require_gpus", "require_host"]


def devices_here() -> tuple[str, ...]:
    """The NVIDIA GPUs that processes may use, as CUDA_VISIBLE_DEVICES names them."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(part.strip() for part in chosen.split(",") if part.strip())
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = [command, "--query-gpu=index", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(answer.split())


def require_gpus(planned: Hardware) -> tuple[str, ...]:
    """The GPUs to build on: at least one, of the kind that is planned for.

    An engine holds kernels for one compute capability, chosen by trying them: so it is built on what it will run on. Ranks
    build one after the other where there are fewer GPUs than ranks.

    Raises:
        SetupError: there is none, or it is another kind.
    """
    found, devices = local_gpu(), devices_here()
    if found is None or not devices:
        raise SetupError(
            "engines of TensorRT-LLM are built on the GPU that they run on, and this machine shows none",
            hint="`roundhouse plan` needs none, nor does `roundhouse build --target trtllm-pytorch --gpu NAME`.",
        )
    if planned.kind == "cuda" and found.compute_capability != planned.compute_capability:
        raise SetupError(
            f"the plan is for {planned.name} (SM {planned.compute_capability}), and this machine has {found.name} "
            f"(SM {found.compute_capability})",
            hint="Build on the kind of GPU that it shall run on.",
        )
    return devices


def require_host(compiled: Compiled, installation: Installation) -> None:
    """See that an engine that was compiled somewhere runs here.

    Raises:
        EngineError: naming everything that is another: TensorRT-LLM's version, the GPU's kind, and too few GPUs.
    """
    found, devices = local_gpu(), devices_here()
    here = found.compute_capability if found else None
    problems = []
    if compiled.versions.get("tensorrt_llm") != installation.version:
        built = compiled.versions.get("tensorrt_llm", "an unknown version")
        problems.append(f"it was built by TensorRT-LLM {built}, and here is {installation.version}")
    if compiled.compute_capability is not None and compiled.compute_capability != here:
        has = f"has SM {here}" if here else "shows no GPU"
        problems.append(f"it was built for SM {compiled.compute_capability}, and this machine {has}")
    if compiled.world_size > len(devices):
        problems.append(f"it has {compiled.world_size} ranks, and here are {len(devices)} GPUs")
    if problems:
        raise EngineError(f"this engine does not run here: {'; '.join(problems)}", hint="Build it on this machine.")
