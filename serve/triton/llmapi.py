"""Writes a Triton repository for TensorRT-LLM's LLM API: upstream's `llmapi` model with an engine's arguments.

The model's code is the one that NVIDIA's image brings: what is written here is its configuration, and a file that finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any

from roundhouse.build.trtllm.upstream import TritonTensor, upstream
from roundhouse.errors import UsageError

from ..trtllm_arguments import arguments_text
from .llmapi_lint import lint_llmapi
from .repository import require_model_name
from .staging import staged_model

__all__ = ["LLMAPI_MODEL_PY", "MODEL_YAML", "TRITON_CONFIG", "llmapi_config_text", "model_yaml", "write_llmapi"]

MODEL_YAML = "model.yaml"
"""Beside the model's code: the arguments of ``tensorrt_llm.LLM``, and ``triton_config``."""

TRITON_CONFIG = {"max_batch_size": 0, "decoupled": True, "cancellation_check_period_ms": 100}
"""Decoupled, for without it upstream's model refuses to stream."""

LLMAPI_MODEL_PY = '''"""Triton loads this file; the model itself is the `llmapi` model that fits the installed TensorRT-LLM."""

import importlib.util
import os
import sys

folder = os.environ.get("ROUNDHOUSE_LLMAPI_MODEL", "/app/all_models/llmapi/tensorrt_llm/1")
file = os.path.join(folder, "model.py")
if not os.path.isfile(file):
    raise RuntimeError(
        "TensorRT-LLM's llmapi model is not in " + folder + ": set ROUNDHOUSE_LLMAPI_MODEL to the folder "
        "triton_backend/all_models/llmapi/tensorrt_llm/1 of the tag of NVIDIA/TensorRT-LLM that is installed here"
    )
sys.path.insert(0, folder)  # for the helpers beside it
spec = importlib.util.spec_from_file_location("llmapi_model", file)
module = sys.modules["llmapi_model"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
TritonPythonModel = module.TritonPythonModel
'''
"""The text of ``1/model.py``."""

_CONFIG = Template("""\
# TensorRT-LLM's `llmapi` model. max_batch_size and decoupled are in 1/model.yaml, where it takes them from.
name: "$name"
backend: "python"

instance_group [ { count: 1 kind: KIND_CPU } ]

input [
$inputs
]

output [
$outputs
]
""")


def write_llmapi(repository: Path, name: str, arguments: Mapping[str, Any], *, about: str) -> Path:
    """Lint a model, and add it to a repository.

    Args:
        repository: the folder to write to; made when absent.
        name: what the model is served as.
        arguments: of ``tensorrt_llm.LLM``, ``model`` among them.
        about: said in the first line of ``model.yaml``.

    Returns:
        The model's folder.

    Raises:
        UsageError: no model can be called like this, or one is there already.
        ServeError: the result does not pass :func:`roundhouse.serve.triton.llmapi_lint.lint_llmapi`.
    """
    require_model_name(name)
    folder = repository / name
    if folder.exists():
        raise UsageError(f"{folder} is there already", hint="Remove it, or write to another folder.")
    with staged_model(repository, name) as staging:
        version = staging / name / "1"
        version.mkdir(parents=True)
        (version.parent / "config.pbtxt").write_text(llmapi_config_text(name), encoding="utf-8")
        (version / "model.py").write_text(LLMAPI_MODEL_PY, encoding="utf-8")
        (version / MODEL_YAML).write_text(model_yaml(arguments, about=about), encoding="utf-8")
        lint_llmapi(version.parent)
    return folder


def llmapi_config_text(name: str) -> str:
    """The text of ``config.pbtxt``: the tensors of upstream's model, as recorded."""
    model = upstream().triton["llmapi"]
    return _CONFIG.substitute(name=name, inputs=_tensors(model.inputs.items()), outputs=_tensors(model.outputs.items()))


def model_yaml(arguments: Mapping[str, Any], *, about: str) -> str:
    """The text of ``model.yaml``."""
    return arguments_text({**arguments, "triton_config": dict(TRITON_CONFIG)}, about=about)


def _tensors(specs: Iterable[tuple[str, TritonTensor]]) -> str:
    return ",\n".join(
        f'  {{ name: "{name}" data_type: TYPE_{spec.dtype} dims: [ {", ".join(map(str, spec.dims))} ]'
        + (" optional: true }" if spec.optional else " }")
        for name, spec in specs
    )
