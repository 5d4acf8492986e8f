"""What `roundhouse doctor` finds of TensorRT-LLM; nothing of it is imported."""

from __future__ import annotations

import os

from roundhouse.build.trtllm import target_verdicts, version_there
from roundhouse.build.trtllm.engines import PLUGIN_VARIABLE, guard_plugin
from roundhouse.build.trtllm.interpreter import PYTHON_VARIABLE, find_python
from roundhouse.errors import SetupError

from .finding import Finding

__all__ = ["about_tensorrt_llm"]

_FOR_ENGINES = "Builds of trtllm-pytorch need it not."


def about_tensorrt_llm() -> list[Finding]:
    """Which of TensorRT-LLM's targets run here, and whether what the environment names for it is there."""
    found = version_there()
    findings = []
    for target, reason in target_verdicts(found).items():
        detail = reason or f"TensorRT-LLM {found} runs it"
        if reason and target == "trtllm-pytorch":
            detail += "; its engines are built without TensorRT-LLM and a GPU: --gpu names theirs"
        findings.append(Finding(name=f"target {target}", state="absent" if reason else "ok", detail=detail))
    return [*findings, *_of_other_python(found), *_guard_plugin()]


def _of_other_python(found: str | None) -> list[Finding]:
    """Whether the Python that is named for TensorRT-LLM has it; nothing where none is named."""
    if not os.environ.get(PYTHON_VARIABLE):
        return []
    try:
        detail, hint = f"{find_python()}: TensorRT-LLM {found}", ""
        if found is None:
            detail, hint = f"{find_python()} has no TensorRT-LLM", "Give the path of the Python that has it."
    except SetupError as error:
        detail, hint = error.message, error.hint or ""
    remedy = f"{hint} {_FOR_ENGINES}" if hint else ""
    return [Finding(name=PYTHON_VARIABLE, state="limited" if hint else "ok", detail=detail, remedy=remedy)]


def _guard_plugin() -> list[Finding]:
    """Whether the plugin that is named for the page guard is there; nothing where none is named."""
    if not os.environ.get(PLUGIN_VARIABLE):
        return []
    try:
        return [Finding(name=PLUGIN_VARIABLE, state="ok", detail=str(guard_plugin()))]
    except SetupError as error:
        return [Finding(name=PLUGIN_VARIABLE, state="limited", detail=error.message, remedy=f"{error.hint} {_FOR_ENGINES}")]
