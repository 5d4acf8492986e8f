"""The `trtllm-pytorch` target's compiler: there is nothing to compile; the checkpoint is checked, the arguments are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from roundhouse.errors import BuildError, VerifyError

from ..compiled import Compilation, Compiled
from ..engine import CHECKPOINT
from ..kv_scales import is_kv_scale_candidate
from ..planner.plan import Plan
from ..planner.support import needed_version
from ..weights import Tensors
from .hf_checkpoint import check_hf_checkpoint, rounded_anew
from .llm_arguments import LLM_ARGUMENTS, llm_arguments
from .options import nested_options
from .upstream import check_fields, upstream

__all__ = ["LLM_FILE", "compile_llm", "llm_yaml", "require_known"]

LLM_FILE = "llm.yaml"
"""In the folder of what was compiled: the arguments of the LLM API."""

_SHOWN = 8
_FP8_LARGEST = 448


def compile_llm(work: Compilation) -> Compiled:
    """Check that TensorRT-LLM's PyTorch backend reads the checkpoint as it is meant, and write the LLM arguments.

    Raises:
        VerifyError: naming every tensor and every key of the checkpoint that it would not read, or read wrongly.
        BuildError: an argument is none of the recorded TensorRT-LLM's.
    """
    plan, recipe, checkpoint = work.plan, work.recipe, work.folder / CHECKPOINT
    problems = check_hf_checkpoint(checkpoint, plan)
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        lines = "\n".join(f"  - {line}" for line in [*problems[:_SHOWN], *more])
        raise VerifyError(f"TensorRT-LLM's PyTorch backend would not read this checkpoint as it is meant:\n{lines}")
    arguments = llm_arguments(plan)
    require_known(arguments)
    for warning in (rounded_anew(checkpoint, plan), _about_kv_scales(checkpoint) if recipe.kv_cache == "fp8" else None):
        if warning:
            work.report.warn(warning)
    work.output.mkdir()
    (work.output / LLM_FILE).write_text(llm_yaml(plan, arguments), encoding="utf-8")
    work.stage.result = f"{len(arguments)} arguments of the LLM API, checked against TensorRT-LLM {upstream().version}"
    return Compiled(
        versions={"tensorrt_llm": upstream().version},
        compute_capability=plan.hardware.compute_capability,
        tensor_parallel=recipe.tensor_parallel,
        pipeline_parallel=recipe.pipeline_parallel,
        guard=None,
        options=nested_options(recipe.target_options),
    )


def require_known(arguments: dict[str, Any]) -> None:
    """See that the recorded release takes every argument.

    Raises:
        BuildError: naming each one that it does not.
    """
    if complaints := check_fields(LLM_ARGUMENTS, arguments):
        raise BuildError(f"these are no arguments of TensorRT-LLM {upstream().version}: {'; '.join(complaints)}")


def _about_kv_scales(folder: Path) -> str | None:
    """What is lost where the largest key or value of the calibration text is beyond what FP8 holds without its scale."""
    tensors = Tensors(folder)
    scales = {name: float(tensors[name].float().max()) for name in tensors if is_kv_scale_candidate(name)}
    beyond = [name for name, scale in scales.items() if scale > 1]
    if not beyond:
        return None
    worst = max(beyond, key=lambda name: scales[name])
    return (
        f"{len(beyond)} of {len(scales)} KV scales are above 1, that of {worst} is for values up to "
        f"{scales[worst] * _FP8_LARGEST:,.0f}: trtllm-pytorch uses none and cuts off what is beyond ±{_FP8_LARGEST}; "
        "kv_cache bf16 keeps it"
    )


def llm_yaml(plan: Plan, arguments: dict[str, Any]) -> str:
    """The text of ``llm.yaml``."""
    gpus = f"{plan.gpus} × {plan.hardware.name}" if plan.gpus > 1 else plan.hardware.name
    since = needed_version(plan.recipe.target, plan.shape.architecture)
    later = (
        f"# {plan.shape.architecture} needs {since}: names were checked against {upstream().version} only.\n" if since else ""
    )
    return (
        f"# Arguments of tensorrt_llm.LLM for {plan.shape.architecture} on {gpus}, with the names of TensorRT-LLM "
        f"{upstream().version}.\n"
        f"{later}"
        "# Without the page check: `roundhouse export triton ENGINE` writes a deployment that has it.\n"
        + yaml.safe_dump(arguments, sort_keys=False, allow_unicode=True, width=120)
    )
