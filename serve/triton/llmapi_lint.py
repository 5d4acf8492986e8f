"""Checks an `llmapi` model of a Triton repository against the record of TensorRT-LLM's own, before Triton loads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from roundhouse.build.trtllm.llm_arguments import LLM_ARGUMENTS
from roundhouse.build.trtllm.upstream import TritonTensor, check_fields, upstream
from roundhouse.errors import ServeError

__all__ = ["lint_llmapi"]

_NEVER_HERE = {"max_batch_size": "max_batch_size", "model_transaction_policy": "decoupled"}
"""Fields of ``config.pbtxt`` that upstream's model sets itself, and the keys of ``triton_config`` that it takes them from."""


def lint_llmapi(folder: Path) -> None:
    """Refuse a model that Triton, or TensorRT-LLM in it, would not load, or would load as something else.

    Args:
        folder: of one model, with ``config.pbtxt``, ``1/model.py`` and ``1/model.yaml``.

    Raises:
        ServeError: naming every problem.
    """
    problems = [f"{path} is missing" for path in ("1/model.py",) if not (folder / path).is_file()]
    problems += [*_lint_config(folder / "config.pbtxt", folder.name), *_lint_arguments(folder / "1" / "model.yaml")]
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise ServeError(
            f"the model {folder.name} cannot be served:\n{lines}", hint="Write it again: `roundhouse export triton`."
        )


def _lint_config(path: Path, name: str) -> Iterator[str]:
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    config = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(path.read_text(encoding="utf-8"), config)
    except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
        yield f"config.pbtxt cannot be read: {error}"
        return
    if config.name != name:
        yield f"config.pbtxt names the model {config.name!r}; it must be named as its folder"
    if config.backend != "python":
        yield f"config.pbtxt: the backend is {config.backend!r}, not python"
    there = {field.name for field, _ in config.ListFields()}
    for field, key in _NEVER_HERE.items():
        if field in there:
            yield f"config.pbtxt has {field}: it belongs into model.yaml, as triton_config.{key}"
    recorded = upstream().triton["llmapi"]
    yield from _lint_tensors("input", config.input, recorded.inputs)
    yield from _lint_tensors("output", config.output, recorded.outputs)


def _lint_tensors(kind: str, tensors: Any, recorded: Mapping[str, TritonTensor]) -> Iterator[str]:
    """Differences between the tensors of a config and those that upstream's model reads and writes."""
    from tritonclient.grpc import model_config_pb2

    given = {each.name: each for each in tensors}
    for name, spec in recorded.items():
        if name not in given:
            yield f"config.pbtxt: the {kind} {name} is missing"
            continue
        each = given.pop(name)
        written = model_config_pb2.DataType.Name(each.data_type), tuple(each.dims), bool(getattr(each, "optional", False))
        wanted = f"TYPE_{spec.dtype}", spec.dims, spec.optional
        if written != wanted:
            yield f"config.pbtxt: the {kind} {name} is {_told(*written)}, not {_told(*wanted)}"
    for name in given:
        yield f"config.pbtxt: TensorRT-LLM {upstream().version}'s llmapi model has no {kind} {name}"


def _told(data_type: str, dims: tuple[int, ...], optional: bool) -> str:
    return f"{data_type} {list(dims)}{' optional' if optional else ''}"


def _lint_arguments(path: Path) -> Iterator[str]:
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        yield f"model.yaml cannot be read: {error}"
        return
    if not isinstance(given, dict):
        yield "model.yaml holds no arguments"
        return
    triton = given.pop("triton_config", None)
    yield from _lint_triton_config(triton)
    if "model" not in given:
        yield "model.yaml: model is missing"
    yield from (f"model.yaml: {complaint}" for complaint in check_fields(LLM_ARGUMENTS, given))


def _lint_triton_config(given: Any) -> Iterator[str]:
    recorded = upstream().triton["llmapi"].model_yaml["triton_config"]
    known = recorded if isinstance(recorded, dict) else {}
    if not isinstance(given, dict):
        yield "model.yaml: triton_config is missing"
        return
    yield from (f"model.yaml: triton_config.{key} is missing" for key in _NEVER_HERE.values() if key not in given)
    yield from (f"model.yaml: triton_config.{key} is not known" for key in given if key not in known)
    if given.get("max_batch_size", 0) != 0:
        yield "model.yaml: triton_config.max_batch_size must be 0: the model takes one request at a time"
