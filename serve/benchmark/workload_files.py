"""Workloads by name or from a file: YAML with the keys of :class:`~roundhouse.serve.benchmark.workload.Workload`."""

from __future__ import annotations

import difflib
import json
import reprlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from roundhouse.build.recipe_yaml import is_manageable, parse_yaml
from roundhouse.errors import UsageError

from ..disk import spelled_out
from .conversations import content_hash, read_conversations
from .workload import Workload

__all__ = ["name_of_workload", "shipped_workloads", "workload_named"]

_YAML = (".yaml", ".yml")
_CONVERSATIONS = (".jsonl", ".json")
_COMPUTED = {"kind", "file_sha256"}
"""Keys of a workload that are none of a file: they follow from ``file``."""


def shipped_workloads() -> dict[str, Workload]:
    """Those that come with Roundhouse, by name."""
    found = (each for each in files(__package__).joinpath("workloads").iterdir() if each.name.endswith(".yaml"))
    made = {each.name.removesuffix(".yaml"): each.read_text(encoding="utf-8") for each in found}
    return {name: _workload(text, name, where=name, folder=Path()) for name, text in sorted(made.items())}


def name_of_workload(workload: Workload) -> str:
    """What :func:`workload_named` makes the same workload of (but ``requests_each``): a shipped one's name, or its content."""
    shipped = shipped_workloads().get(workload.name)
    if shipped is not None and shipped.model_copy(update={"requests_each": workload.requests_each}) == workload:
        return workload.name
    content = workload.model_dump(mode="json", exclude_defaults=True, exclude={*_COMPUTED, "requests_each"})
    return json.dumps({"name": workload.name, **content})


def workload_named(text: str, folder: Path | None = None) -> Workload:
    """A workload as somebody names it.

    Args:
        text: name of a shipped one, a YAML file, a conversation file (``.jsonl``, ``.json``), or the content of a YAML
            file in braces.
        folder: where else ``NAME.yaml`` may lie.

    Raises:
        UsageError: there is none of that name, or the file is wrong, naming the key and the nearest valid one.
    """
    if text.lstrip().startswith("{"):
        return _workload(text, "inline", where="--workload", folder=Path())
    path = spelled_out(text)
    if path.suffix in _CONVERSATIONS:
        return Workload(name=path.stem[:64], **_conversations(path))
    if path.suffix in _YAML:
        return _from_file(path)
    shipped = shipped_workloads()
    if text in shipped:
        return shipped[text]
    if folder is not None and path.name == text and (folder / f"{text}.yaml").is_file():
        return _from_file(folder / f"{text}.yaml")
    if _is_file(path):
        raise UsageError(f"{text} is no workload file", hint="One ends with .yaml; a conversation file with .jsonl or .json.")
    near = difflib.get_close_matches(text, shipped, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"no workload is called {text!r}{guess}", hint=f"There are {', '.join(shipped)}; or name a .yaml file.")


def _is_file(path: Path) -> bool:
    """Whether there is such a file; a text that is no path names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _from_file(path: Path) -> Workload:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # also of a text that is no path, or no UTF-8
        raise UsageError(f"workload {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return _workload(text, path.stem, where=str(path), folder=path.parent)


def _workload(text: str, name: str, *, where: str, folder: Path) -> Workload:
    try:
        content = parse_yaml(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{where} is not YAML: {error}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict) or not is_manageable(content):
        raise UsageError(f"{where} holds no workload", hint="A workload is a few keys and their values.")
    keys = [key for key in Workload.model_fields if key not in _COMPUTED]
    unknown = [_unknown(key, keys) for key in content if key not in keys]
    if unknown:
        raise UsageError(f"{where}: {'; '.join(unknown)}", hint=f"A workload's keys are {', '.join(keys)}.")
    if content.get("file") is not None:
        content |= _conversations(folder / str(content["file"]))
    try:
        return Workload.model_validate({"name": name, **content}, strict=True)
    except ValidationError as error:
        raise UsageError(f"{where}: {'; '.join(map(_told, error.errors()))}") from None


def _conversations(path: Path) -> dict[str, Any]:
    """What a workload knows of a conversation file, which is read to see that it is one."""
    sha256 = content_hash(path)
    read_conversations(path, expected_sha256=sha256)
    return {"kind": "conversations", "file": str(path.resolve()), "file_sha256": sha256}


def _unknown(key: object, keys: list[str]) -> str:
    near = difflib.get_close_matches(str(key), keys, n=1, cutoff=0.5)
    return f"unknown key {key!r}" + (f" (did you mean {near[0]!r}?)" if near else "")


def _told(problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{key}: {message} (got {reprlib.repr(problem['input'])})" if key else message
