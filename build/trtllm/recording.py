"""Record TensorRT-LLM's surface anew from an installed one, by introspection; no source is parsed.

Recorded again is what ``upstream.json`` names. What cannot be seen from outside is taken over from it: notes, the names
of instance attributes, the tensors of engines and checkpoints, and Triton's models.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click
import pydantic
from pydantic_core import PydanticUndefined

from roundhouse.errors import SetupError

from .differences import differences
from .interpreter import PYTHON_VARIABLE
from .upstream import (
    CallableRecord,
    ClassRecord,
    FieldsRecord,
    OptionSpec,
    OptionsRecord,
    ParameterSpec,
    Record,
    Source,
    Upstream,
    UpstreamField,
    ValuesRecord,
    upstream,
)
from .versions import installed_version

__all__ = ["Recording", "record_installed", "recording_text"]

PACKAGE = "tensorrt_llm"
_WIDTH = 140
_KINDS: Mapping[inspect._ParameterKind, typing.Literal["plain", "keyword", "arguments", "keywords"]] = {
    inspect.Parameter.POSITIONAL_ONLY: "plain",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "arguments",
    inspect.Parameter.VAR_KEYWORD: "keywords",
}


@dataclass(frozen=True)
class Recording:
    """What an installed TensorRT-LLM takes, and in words how that differs from what was recorded before."""

    upstream: Upstream
    changes: tuple[str, ...]


def record_installed(names: Iterable[str] | None = None) -> Recording:
    """Record the installed TensorRT-LLM.

    Args:
        names: of the records to make; all by default. The others are taken over as they are.

    Raises:
        SetupError: TensorRT-LLM is not installed here, or cannot be imported.
    """
    version = installed_version()
    if version is None:
        raise SetupError(
            "TensorRT-LLM is not installed in this environment",
            hint=f"Set {PYTHON_VARIABLE} to a Python that has it, and this package.",
        )
    try:
        importlib.import_module(PACKAGE)
    except Exception as error:
        raise SetupError(
            f"TensorRT-LLM {version} cannot be imported: {error}", hint="Import it by itself to see why."
        ) from error
    before = upstream()
    records = dict(before.records)
    changes: list[str] = []
    for name in before.records if names is None else names:
        old = before.records[name]
        try:
            records[name] = new = _recorded(name, old, version)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            del records[name]
            changes.append(f"{name}: cannot be recorded: {error}")
        else:
            changes += [f"{name}: {change}" for change in differences(old, new)]
    notes = (f"records whose source is an installed {PACKAGE} are of that one; all else was taken over from the record before",)
    return Recording(before.model_copy(update={"version": version, "notes": notes, "records": records}), tuple(changes))


def recording_text(recorded: Upstream) -> str:
    """A recording as the text of its file: what fits a line stands on one."""
    value = recorded.model_dump(mode="json", exclude_unset=True)
    return _lines(value, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(line) <= _WIDTH:
        return line
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_lines(each, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _lines(each, inner) for each in value) + f"\n{indent}]"


def _recorded(name: str, old: Record, version: str) -> Record:
    subject, module = _found(name)
    common: dict[str, Any] = {
        "source": Source(
            repository=f"{PACKAGE} {version}, installed",
            path=module.replace(".", "/"),
            commit=None,
            exact=True,
            note="by introspection",
        )
    }
    if old.notes:
        common["notes"] = old.notes
    if isinstance(old, FieldsRecord):
        return FieldsRecord(kind="fields", fields=_fields(subject), **common)
    if isinstance(old, ValuesRecord):
        return ValuesRecord(kind="values", values=_values(subject), **common)
    if isinstance(old, OptionsRecord):
        return OptionsRecord(kind="options", options=_options(subject), **common)
    if isinstance(old, CallableRecord):
        return CallableRecord(kind="callable", parameters=_parameters(subject), **common)
    methods = {method: _parameters(getattr(subject, method)) for method in old.methods if hasattr(subject, method)}
    if old.attributes:
        common["attributes"] = old.attributes
    return ClassRecord(kind="class", methods=methods, **common)


def _found(name: str) -> tuple[Any, str]:
    """What a dotted name leads to, and the module that it is in."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:end])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found, module
    raise ImportError(f"there is no module {parts[0]}")


def _fields(subject: Any) -> dict[str, UpstreamField]:
    if isinstance(subject, type) and issubclass(subject, pydantic.BaseModel):
        return {
            name: _field(field.annotation, field.default, field.default_factory) for name, field in subject.model_fields.items()
        }
    if dataclasses.is_dataclass(subject):
        hints = _type_hints(subject)
        return {
            field.name: _field(
                hints.get(field.name, field.type),
                PydanticUndefined if field.default is dataclasses.MISSING else field.default,
                None if field.default_factory is dataclasses.MISSING else field.default_factory,
            )
            for field in dataclasses.fields(subject)
            if field.init
        }
    raise TypeError("neither a pydantic model nor a dataclass any more")


def _field(annotation: Any, default: Any, factory: Callable[..., Any] | None) -> UpstreamField:
    said: dict[str, Any] = {"type": _type_text(annotation)}
    if factory is not None:
        said["factory"] = getattr(factory, "__name__", type(factory).__name__)
    elif default is not PydanticUndefined:
        said["default"] = _plain(default)
    if choices := _choices(annotation):
        said["choices"] = choices
    return UpstreamField(**said)


def _values(subject: Any) -> tuple[str, ...]:
    if isinstance(subject, type) and issubclass(subject, enum.Enum):
        return tuple(str(_plain(member)) for member in subject)
    if isinstance(subject, Mapping):
        return tuple(map(str, subject))
    raise TypeError("neither an enumeration nor a table any more")


def _options(subject: Any) -> dict[str, OptionSpec]:
    if isinstance(subject, click.Command):
        found = [(each.opts, each.default, each.type) for each in subject.params if isinstance(each, click.Option)]
        return dict(
            _option(words, default, kind.choices if isinstance(kind, click.Choice) else None) for words, default, kind in found
        )
    parser = subject() if inspect.isfunction(subject) else subject
    if not isinstance(parser, argparse.ArgumentParser):
        raise TypeError("neither a click command nor an argument parser any more")
    return dict(
        _option(action.option_strings, action.default, action.choices)
        for action in parser._actions
        if any(word.startswith("--") for word in action.option_strings) and action.dest != "help"
    )


def _option(words: Iterable[str], default: Any, choices: Iterable[Any] | None) -> tuple[str, OptionSpec]:
    name, *aliases = (word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--"))
    unset = default is argparse.SUPPRESS or getattr(default, "name", None) == "UNSET"  # the latter is click's
    said: dict[str, Any] = {"default": None if unset else _plain(default)}
    if choices is not None:
        said["choices"] = tuple(_plain(choice) for choice in choices)
    if aliases:
        said["aliases"] = tuple(aliases)
    return name, OptionSpec(**said)


def _parameters(subject: Any) -> tuple[ParameterSpec, ...]:
    if isinstance(subject, type):
        subject = subject.__init__  # type: ignore[misc]  # what calling a class takes
    parameters = list(inspect.signature(subject).parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    return tuple(_parameter(each) for each in parameters)


def _parameter(parameter: inspect.Parameter) -> ParameterSpec:
    said: dict[str, Any] = {"name": parameter.name}
    if parameter.default is not inspect.Parameter.empty:
        said["default"] = _plain(parameter.default)
    if (kind := _KINDS[parameter.kind]) != "plain":
        said["kind"] = kind
    return ParameterSpec(**said)


def _type_hints(subject: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(subject)
    except NameError:  # it names types that it imports for type checkers only
        return {}


def _type_text(annotation: Any) -> str:
    """A type as we write it: without modules, ``Optional`` as ``| None``, the choices of a literal as their class."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if origin is typing.Annotated:
        return _type_text(arguments[0])
    if origin is typing.Literal:
        return " | ".join(dict.fromkeys(type(each).__name__ if each is not None else "None" for each in arguments))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(part for each in arguments for part in _type_text(each).split(" | ")))
    if origin is not None and arguments:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(_type_text, arguments))}]"
    return annotation.__name__ if isinstance(annotation, type) else re.sub(r"\b\w+\.", "", str(annotation))


def _choices(annotation: Any) -> tuple[Any, ...] | None:
    """The values that a type of literals, or of an enumeration of words, allows; None where it allows others too."""
    found: list[Any] = []
    for part in _union(annotation):
        if typing.get_origin(part) is typing.Literal:
            found += [_plain(each) for each in typing.get_args(part)]
        elif isinstance(part, type) and issubclass(part, enum.Enum) and issubclass(part, str):
            found += [_plain(each) for each in part]
        elif part is type(None):
            found.append(None)
        else:
            return None
    return tuple(dict.fromkeys(found)) if found != [None] else None


def _union(annotation: Any) -> list[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _union(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return [part for each in arguments for part in _union(each)]
    return [annotation]


def _plain(value: Any) -> Any:
    """A default as JSON has it: an enumeration's member by its word, anything else by its name or its class."""
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, str) else value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__name__
    name = getattr(value, "name", None)  # a member of an enumeration of the C++ part
    return name if isinstance(name, str) else type(value).__name__
