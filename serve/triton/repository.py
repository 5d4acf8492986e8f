"""Writes the model repository that Triton loads: one decoupled Python-backend model per engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from string import Template

from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError

from ..settings import Overrides
from .contract import INPUTS, OUTPUTS, TensorSpec
from .lint import lint_repository

__all__ = [
    "ENGINE_KEY",
    "MODEL_PY",
    "OVERRIDES_KEY",
    "PYTHON_KEY",
    "config_text",
    "model_name",
    "model_parameters",
    "require_model_name",
    "write_model",
    "write_repository",
]

ENGINE_KEY, PYTHON_KEY, OVERRIDES_KEY = "engine", "python", "overrides"
"""Config parameters that the backend reads."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

MODEL_PY = '''"""Triton loads this file; the model itself is Roundhouse's backend."""
from roundhouse.serve.triton.backend import TritonPythonModel  # noqa: F401
'''
"""The text of ``1/model.py``."""

_CONFIG = Template("""\
name: $name
backend: "python"
max_batch_size: 0

# Every request may get any number of responses, at any time.
model_transaction_policy { decoupled: true }

# One instance: the engine process behind it batches.
instance_group [ { count: 1 kind: KIND_CPU } ]

input [
$inputs
]

output [
$outputs
]

$parameters
""")


def model_name(engine: Engine) -> str:
    """The name an engine is served under: its own, with what Triton and URLs do not take replaced by ``-``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", engine.manifest.name).strip("-.") or engine.manifest.id


def require_model_name(name: str) -> None:
    """See that Triton and URLs take a name as it is.

    Raises:
        UsageError: they do not.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"no model can be served as {name!r}",
            hint="Use letters, digits, dots, dashes and underscores, beginning with a letter or a digit.",
        )


def model_parameters(engine: Engine, overrides: Overrides, *, python: str = sys.executable) -> dict[str, str]:
    """The config parameters that the backend reads.

    Args:
        engine: the engine to serve.
        overrides: what to change of its recipe.
        python: the interpreter that the engine process runs in.
    """
    return {
        ENGINE_KEY: str(engine.folder.resolve()),
        PYTHON_KEY: python,
        OVERRIDES_KEY: overrides.model_dump_json(exclude_none=True),
    }


def write_repository(
    repository: Path, engine: Engine, *, overrides: Overrides, python: str = sys.executable, name: str | None = None
) -> str:
    """Add an engine to a repository, and lint the whole.

    Args:
        repository: the folder to write to; made when absent.
        engine: the engine to serve.
        overrides: what to change of its recipe.
        python: the interpreter that the engine process runs in.
        name: what it is served as; None takes its own name.

    Returns:
        The model's name.

    Raises:
        ServeError: the result does not pass :func:`roundhouse.serve.triton.lint.lint_repository`.
    """
    name = name or model_name(engine)
    write_model(repository, name, model_parameters(engine, overrides, python=python))
    lint_repository(repository)
    return name


def write_model(repository: Path, name: str, parameters: dict[str, str]) -> None:
    """Write ``<repository>/<name>/config.pbtxt`` and ``1/model.py``; the model must be new there."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(config_text(name, parameters))
    (version / "model.py").write_text(MODEL_PY)


def config_text(name: str, parameters: dict[str, str]) -> str:
    """The text of ``config.pbtxt`` for a model of this name with these string parameters."""
    lines = (
        f"parameters {{ key: {_quoted(key)} value {{ string_value: {_quoted(value)} }} }}" for key, value in parameters.items()
    )
    return _CONFIG.substitute(
        name=_quoted(name),
        inputs=_tensors(INPUTS, optional=True),
        outputs=_tensors(OUTPUTS, optional=False),
        parameters="\n".join(lines),
    )


def _tensors(specs: Iterable[TensorSpec], *, optional: bool) -> str:
    tail = " optional: true" if optional else ""
    return ",\n".join(
        f"  {{ name: {_quoted(spec.name)} data_type: {spec.data_type} dims: [ {spec.length} ]{tail} }}" for spec in specs
    )


def _quoted(text: str) -> str:
    """A string in protobuf's text format. ``$`` is escaped too: a folder named ``${x}`` is no unfilled placeholder."""
    return '"' + "".join(_escape(byte) for byte in text.encode()) + '"'


def _escape(byte: int) -> str:
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 0x20 <= byte < 0x7F and character != "$" else f"\\{byte:03o}"
