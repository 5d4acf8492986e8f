"""The `tensorrt` target's compiler: TensorRT-LLM's engines, one for each rank, and the page guard's beside them.

The verified checkpoint is converted and read back first (``checkpoint.py``, ``checkpoint_check.py``). TensorRT-LLM then runs in
processes of its own Python; nothing of it is imported here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import roundhouse
from roundhouse.errors import BuildError, SetupError

from ..compiled import Compilation, Compiled, CompiledGuard
from ..engine import CHECKPOINT
from ..planner.plan import Plan
from .checkpoint import write_trtllm_checkpoint
from .checkpoint_check import check_trtllm_checkpoint
from .children import Child, run_children
from .engine_config import build_config, cuts_prompts
from .host import require_gpus
from .interpreter import Installation, environment, find_installation, script
from .options import nested_options

__all__ = ["GUARD_ENGINE", "PLUGIN_VARIABLE", "Machine", "compile_tensorrt", "guard_plugin", "require_tensorrt"]

PLUGIN_VARIABLE = "ROUNDHOUSE_GUARD_PLUGIN"
"""The environment variable with the path of the guard's plugin: ``page_guard.ptx`` or ``libroundhouse_kv_page_guard.so``."""
GUARD_ENGINE = "guard.engine"
_TIMING_CACHE = "model.cache"
_MILESTONES = (
    re.compile("^roundhouse: imported$"),
    re.compile("^roundhouse: loaded$"),
    re.compile("Build TensorRT engine"),
    re.compile("Total time of building"),
    re.compile("^roundhouse: saved$"),
)
"""What a rank says on its way: our script's lines, and between them the builder's own."""


@dataclass(frozen=True)
class Machine:
    """What this machine builds with: TensorRT-LLM, its GPUs, with a guard its plugin, and timings that the recipe names."""

    installation: Installation
    devices: tuple[str, ...]
    plugin: Path | None
    timings: Path | None = None


def require_tensorrt(plan: Plan) -> Machine:
    """See that this machine can build a plan's engines, before anything is spent on it.

    Raises:
        SetupError: TensorRT-LLM is not there or has no engine path, there is no such GPU, the guard has no plugin, or the
            timing cache of the recipe is no file.
    """
    devices, plugin = require_gpus(plan.hardware), None if plan.recipe.guard == "off" else guard_plugin()
    timings = _timings(plan)
    return Machine(find_installation("tensorrt"), devices, plugin, timings)  # last, because importing it takes its time


def compile_tensorrt(work: Compilation, machine: Machine) -> Compiled:
    """Build the engines of every rank, and the guard's.

    Args:
        work: the engine in the making.
        machine: as :func:`require_tensorrt` found it.

    Raises:
        VerifyError: the converted checkpoint is not what was verified.
        BuildError: a rank could not be built; its own words are in the message.
    """
    plan, recipe = work.plan, work.recipe
    world = recipe.tensor_parallel * recipe.pipeline_parallel
    config = build_config(plan)
    if machine.timings is not None:
        config["input_timing_cache"] = str(machine.timings)
    # Two steps of every rank are the checkpoint's, then come what its build tells.
    total = world * (2 + len(_MILESTONES))
    with tempfile.TemporaryDirectory(prefix=".compile-", dir=work.folder) as scratch:
        place = Path(scratch)
        checkpoint = place / "checkpoint"
        write_trtllm_checkpoint(work.folder / CHECKPOINT, checkpoint, plan, lambda done, _: work.stage.progress(done, total))
        check_trtllm_checkpoint(
            work.folder / CHECKPOINT, checkpoint, plan, lambda done, _: work.stage.progress(world + done, total)
        )
        _build_ranks(machine, place, checkpoint, config, world, lambda done: work.stage.progress(2 * world + done, total))
        work.output.mkdir()
        _collect(place, work.output, world)
        guard = _build_guard(machine, place, work.output, plan)
    if not cuts_prompts(json.loads((work.output / "config.json").read_text())["build_config"]):
        work.report.warn(
            f"this engine takes prompts whole and reuses no prefix: none above max_num_tokens {recipe.max_num_tokens} is served"
        )
    work.stage.result = f"{world} rank{'s' * (world > 1)} by TensorRT-LLM {machine.installation.version}"
    return Compiled(
        versions={"tensorrt_llm": machine.installation.version, "tensorrt": machine.installation.tensorrt},
        compute_capability=plan.hardware.compute_capability,
        tensor_parallel=recipe.tensor_parallel,
        pipeline_parallel=recipe.pipeline_parallel,
        guard=guard,
        timing_cache=_TIMING_CACHE if (work.output / _TIMING_CACHE).exists() else None,
        options=nested_options(recipe.target_options),
    )


def _build_ranks(
    machine: Machine, place: Path, checkpoint: Path, config: dict[str, Any], world: int, on_step: Callable[[int], None]
) -> None:
    job = place / "job.json"
    job.write_text(json.dumps({"checkpoint": str(checkpoint), "output": str(place), "build_config": config}))
    reached = {f"rank {rank}": 0 for rank in range(world)}

    def on_line(name: str, line: str) -> None:
        passed = [step for step, pattern in enumerate(_MILESTONES, 1) if pattern.search(line)]
        if passed and passed[-1] > reached[name]:
            reached[name] = passed[-1]
            on_step(sum(reached.values()))

    children = []
    for rank in range(world):
        folder = place / f"rank{rank}"
        folder.mkdir()
        command: list[str | Path] = [machine.installation.python, script("rank_build"), job, str(rank)]
        children.append(Child(f"rank {rank}", command, folder, environment()))
    run_children(children, machine.devices, on_line)


def _collect(place: Path, output: Path, world: int) -> None:
    """Move what the ranks wrote to its place, and see that all of it is there."""
    wanted = {f"rank{rank}.engine": place / f"rank{rank}" / f"rank{rank}.engine" for rank in range(world)}
    wanted["config.json"] = place / "rank0" / "config.json"
    missing = [name for name, path in wanted.items() if not path.is_file() or path.stat().st_size == 0]
    if missing:
        raise BuildError(f"TensorRT-LLM ended well and left no {', '.join(missing)}")
    if (cache := place / "rank0" / _TIMING_CACHE).is_file():
        wanted[_TIMING_CACHE] = cache
    for name, path in wanted.items():
        shutil.move(path, output / name)


def _build_guard(machine: Machine, place: Path, output: Path, plan: Plan) -> CompiledGuard | None:
    """The guard for the largest batch and pool that this engine can have on its GPU."""
    if machine.plugin is None:
        return None
    columns = -(-plan.max_seq_len // plan.page_tokens)
    rows = plan.recipe.max_batch_size
    # More pages than the whole GPU has room for: the memory that is free now is no part of what an engine is.
    pages = plan.hardware.total_memory // (plan.kv_bytes_per_token * plan.page_tokens)
    limits = {"rows": rows, "columns": columns, "pages": max(pages, rows * columns)}
    job = place / "guard.json"
    job.write_text(json.dumps({"plugin": str(machine.plugin), "output": str(output / GUARD_ENGINE), **limits}))
    # Our package alone, and nothing else of this environment.
    package = place / "package"
    package.mkdir()
    (package / "roundhouse").symlink_to(Path(roundhouse.__file__).resolve().parent, target_is_directory=True)
    command = [machine.installation.python, script("guard_build"), job]
    kept = environment()
    path = os.pathsep.join([str(package), *filter(None, [kept.get("PYTHONPATH")])])
    child = Child("the guard's build", command, place, kept | {"PYTHONPATH": path})
    run_children([child], machine.devices, lambda *_: None)
    form = "embedded" if machine.plugin.suffix == ".ptx" else "library"
    return CompiledGuard(file=GUARD_ENGINE, plugin=form, **limits)


def _timings(plan: Plan) -> Path | None:
    """The recipe's timing cache, as every rank finds it: each has a working folder of its own."""
    given = nested_options(plan.recipe.target_options).get("input_timing_cache")
    if given is None:
        return None
    path = Path(given).absolute()
    if not path.is_file():
        raise SetupError(f"target_options.input_timing_cache: {path} is no file", hint="An engine's `compiled/` has one.")
    return path


def guard_plugin() -> Path:
    """The page guard's plugin for TensorRT, which the environment names.

    Raises:
        SetupError: it names none, or no file.
    """
    given = os.environ.get(PLUGIN_VARIABLE)
    if not given:
        raise SetupError(
            f"guard tags needs the page guard's plugin for TensorRT, and {PLUGIN_VARIABLE} names none",
            hint="docs/native.md says how it is built; `guard: off` does without.",
        )
    path = Path(given).resolve()
    if not path.is_file():
        raise SetupError(f"{PLUGIN_VARIABLE}: {path} is no file", hint="docs/native.md says how the plugin is built.")
    return path
