"""Checks a model repository before Triton sees it, so that a mistake is named and not half loaded."""

from __future__ import annotations

import re
from pathlib import Path

from roundhouse.errors import ServeError

__all__ = ["lint_repository"]

_UNFILLED = re.compile(r"\$\{[^}]*\}")


def lint_repository(repository: Path) -> None:
    """Refuse a repository with a model that Triton would not load, or would load wrongly.

    Folders whose names begin with a dot are no models: one of those is on its way in, or was left by who died before.

    Raises:
        ServeError: naming every problem: no models, a missing ``config.pbtxt`` or ``1/model.py``, text
            that does not parse, a name that differs from its folder, a placeholder that was not filled.
    """
    folders = [path for path in repository.iterdir() if path.is_dir()] if repository.is_dir() else []
    models = sorted(path for path in folders if not path.name.startswith("."))
    problems = [problem for model in models for problem in _lint_model(model)]
    if not models:
        problems.append(f"{repository} holds no models")
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise ServeError(f"the model repository cannot be served:\n{lines}", hint="Write it again with `roundhouse serve`.")


def _lint_model(model: Path) -> list[str]:
    problems = [] if (model / "1" / "model.py").is_file() else [f"{model.name}: 1/model.py is missing"]
    config = model / "config.pbtxt"
    if not config.is_file():
        return [*problems, f"{model.name}: config.pbtxt is missing"]
    text = config.read_text()
    problems += [f"{model.name}: config.pbtxt has an unfilled placeholder {found}" for found in _UNFILLED.findall(text)]
    name, error = _parse(text)
    if error:
        problems.append(f"{model.name}: config.pbtxt does not parse: {error}")
    elif name != model.name:
        problems.append(f"{model.name}: config.pbtxt names the model {name!r}; it must be named as its folder")
    return problems


def _parse(text: str) -> tuple[str, str | None]:
    """The model's name, and why the text does not parse when it does not."""
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    config = model_config_pb2.ModelConfig()
    try:
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        return "", str(error)
    return str(config.name), None
