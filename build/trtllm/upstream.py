"""TensorRT-LLM's surface as far as our code emits or touches it: what ``upstream.json`` says, typed.

A record says what upstream takes, and where that was read. ``recording.py`` makes the same file from an installed
TensorRT-LLM.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = [
    "CallableRecord",
    "CheckpointFormat",
    "ClassRecord",
    "EngineTensor",
    "EngineTensors",
    "FieldsRecord",
    "HfCheckpoint",
    "ModelList",
    "OptionSpec",
    "OptionsRecord",
    "ParameterSpec",
    "Record",
    "Source",
    "TensorLayout",
    "TritonModel",
    "TritonTensor",
    "Upstream",
    "UpstreamField",
    "ValuesRecord",
    "check_fields",
    "fields_of",
    "parameters_of",
    "read_upstream",
    "record_called",
    "upstream",
]

_ALMOST_THE_SAME = 0.8
"""Likeness from which an unknown key of a record that takes any key is taken for a misspelt known one."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Frozen):
    """Where something was read.

    ``commit`` is None where the version that was read cannot be named; ``exact`` is whether it is the recorded release.
    """

    repository: str
    path: str
    commit: str | None
    exact: bool
    note: str = ""


class UpstreamField(_Frozen):
    """A key that upstream takes; with neither a default nor a factory it is required."""

    type: str
    default: JsonValue = None
    factory: str | None = None
    choices: tuple[JsonValue, ...] | None = None
    note: str = ""

    @property
    def required(self) -> bool:
        """Whether upstream refuses to do without it."""
        return self.factory is None and "default" not in self.model_fields_set


class ParameterSpec(_Frozen):
    """One parameter of a call, without ``self``."""

    name: str
    default: JsonValue = None
    kind: Literal["plain", "keyword", "arguments", "keywords"] = "plain"

    @property
    def required(self) -> bool:
        """Whether a call without it fails."""
        return self.kind in ("plain", "keyword") and "default" not in self.model_fields_set


class OptionSpec(_Frozen):
    """An option of a command line, named without its dashes."""

    default: JsonValue = None
    choices: tuple[JsonValue, ...] | None = None
    aliases: tuple[str, ...] = ()


class _Record(_Frozen):
    source: Source
    notes: tuple[str, ...] = ()


class FieldsRecord(_Record):
    """A pydantic model or a dataclass."""

    kind: Literal["fields"]
    fields: dict[str, UpstreamField]


class CallableRecord(_Record):
    """A function, or a class that is only called; ``parameters`` is None where versions near the release differ in them."""

    kind: Literal["callable"]
    parameters: tuple[ParameterSpec, ...] | None


class ClassRecord(_Record):
    """A class whose methods we call or put ours around; of instance attributes only the names are known."""

    kind: Literal["class"]
    methods: dict[str, tuple[ParameterSpec, ...]]
    attributes: tuple[str, ...] = ()


class ValuesRecord(_Record):
    """The values of an enumeration, or the keys of a table."""

    kind: Literal["values"]
    values: tuple[str, ...]


class OptionsRecord(_Record):
    """A command line."""

    kind: Literal["options"]
    options: dict[str, OptionSpec]


Record = Annotated[FieldsRecord | CallableRecord | ClassRecord | ValuesRecord | OptionsRecord, Field(discriminator="kind")]


class EngineTensor(_Frozen):
    """A tensor of an engine; dims that are no numbers are names of sizes, ``model`` is the model's data type."""

    dtype: str
    dims: tuple[int | str, ...]
    place: Literal["device", "host"] = "device"
    on: str = ""
    when: str = ""
    note: str = ""


class EngineTensors(_Frozen):
    """The runtime tensors of a decoder engine with a paged KV cache."""

    source: Source
    conditions: str
    inputs: dict[str, EngineTensor]
    outputs: dict[str, EngineTensor]
    notes: tuple[str, ...] = ()


class TritonTensor(_Frozen):
    """A tensor of a Triton model; −1 is any length."""

    dtype: str
    dims: tuple[int, ...]
    optional: bool = False


class TritonModel(_Frozen):
    """A model of upstream's Triton repository."""

    source: Source
    model: dict[str, JsonValue]
    inputs: dict[str, TritonTensor]
    outputs: dict[str, TritonTensor]
    parameters: tuple[str, ...] = ()
    model_yaml: dict[str, JsonValue] = {}
    environment: dict[str, str] = {}
    notes: tuple[str, ...] = ()


class TensorLayout(_Frozen):
    """A tensor of a checkpoint."""

    dtype: str
    dims: tuple[int | str, ...]
    packing: str = ""
    of: str = "{linear}"
    note: str = ""


class CheckpointFormat(_Frozen):
    """A TensorRT-LLM checkpoint: the keys of its ``config.json``, and a linear layer's tensors for each algorithm."""

    source: Source
    also: Source
    files: tuple[str, ...]
    config: dict[str, tuple[str, ...]]
    kv_cache_quant_algo: tuple[str, ...]
    algorithms: dict[str, dict[str, TensorLayout]]
    kv_cache: dict[str, TensorLayout]
    at_load: tuple[str, ...]


class HfCheckpoint(_Frozen):
    """What the PyTorch backend reads: Hugging Face's names with the quantized tensors beside them.

    ``w4a8_experts`` are the two forms that routed experts come in, ``w4a8_mode_of`` which model class wants which.
    """

    source: Source
    also: Source
    config: dict[str, tuple[str, ...]]
    linears: dict[str, dict[str, TensorLayout]]
    w4a8_experts: dict[str, dict[str, TensorLayout]]
    w4a8_mode_of: dict[str, str]
    notes: tuple[str, ...]


class ModelList(_Frozen):
    """The model classes that upstream says its PyTorch backend supports."""

    source: Source
    notes: tuple[str, ...] = ()
    values: tuple[str, ...]


class Upstream(_Frozen):
    """The whole file."""

    format: Literal[1]
    version: str
    notes: tuple[str, ...] = ()
    records: dict[str, Record]
    pytorch_models: ModelList
    engine_inputs: EngineTensors
    triton: dict[str, TritonModel]
    quant: CheckpointFormat
    hf_checkpoint: HfCheckpoint


@cache
def upstream() -> Upstream:
    """What is recorded of the release that we build for."""
    return read_upstream(files(__package__).joinpath("upstream.json").read_text(encoding="utf-8"))


def read_upstream(text: str) -> Upstream:
    """Read a recorded file.

    Raises:
        ValueError: it is not one, or of a later format.
    """
    return Upstream.model_validate_json(text)


def fields_of(name: str) -> Mapping[str, UpstreamField]:
    """The keys that a recorded class takes, such as ``tensorrt_llm.builder.BuildConfig``.

    Raises:
        KeyError: nothing is recorded under this name, or no keys.
    """
    record = _record(name)
    if not isinstance(record, FieldsRecord):
        raise KeyError(f"{name} is recorded as {record.kind}, not by its fields")
    return record.fields


def parameters_of(name: str) -> tuple[ParameterSpec, ...]:
    """The parameters of a recorded function, or of a method: ``tensorrt_llm.builder.Engine.save``.

    Raises:
        KeyError: nothing is recorded under this name, or no parameters.
    """
    owner, _, method = name.rpartition(".")
    of_class = upstream().records.get(owner)
    if isinstance(of_class, ClassRecord) and method in of_class.methods:
        return of_class.methods[method]
    record = _record(name)
    if not isinstance(record, CallableRecord) or record.parameters is None:
        raise KeyError(f"{name} is recorded without parameters")
    return record.parameters


def check_fields(name: str, emitted: Mapping[str, Any]) -> list[str]:
    """What upstream would not know of what we emit for it.

    Mappings inside are checked too, where the field's class is recorded. A record that takes any key, as a checkpoint's
    config does, is complained about only where a key looks like a misspelt known one.

    Args:
        name: of the record: a class by its fields, a function by its parameters, a command line by its options.
        emitted: keys and values as they are written out.

    Returns:
        A sentence for each key or value; none when all is known.

    Raises:
        KeyError: nothing with keys is recorded under this name.
    """
    return list(_complaints(name, emitted, ""))


def _complaints(name: str, emitted: Mapping[str, Any], inside: str) -> Iterator[str]:
    known, open_ended = _known_keys(name)
    for key, value in emitted.items():
        path = f"{inside}{key}"
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=_ALMOST_THE_SAME if open_ended else 0.6)
            if near or not open_ended:
                meant = f"; the nearest that it knows is {near[0]}" if near else ""
                if deeper := [f"{inside}{outer}.{key}" for outer, fields in _inside(known) if key in fields]:
                    meant = f"; {' and '.join(deeper)} {'is' if len(deeper) == 1 else 'are'} known"
                yield f"{path}: {name} of TensorRT-LLM {upstream().version} has no {key}{meant}"
            continue
        spec = known[key]
        if isinstance(value, Mapping) and isinstance(spec, UpstreamField) and (nested := record_called(spec.type)):
            yield from _complaints(nested, value, f"{path}.")
        choices = getattr(spec, "choices", None)
        if choices and value not in choices:
            yield f"{path}: {value!r} is none of {', '.join(map(repr, choices))}"


def _inside(
    known: Mapping[str, UpstreamField | ParameterSpec | OptionSpec],
) -> Iterator[tuple[str, Mapping[str, UpstreamField]]]:
    """Keys whose values are mappings that are recorded, and what those take."""
    for key, spec in known.items():
        nested = record_called(spec.type) if isinstance(spec, UpstreamField) else None
        if nested is not None and isinstance(record := _record(nested), FieldsRecord):
            yield key, record.fields


def _known_keys(name: str) -> tuple[Mapping[str, UpstreamField | ParameterSpec | OptionSpec], bool]:
    """What a record takes, and whether it takes other keys besides."""
    record = _record(name)
    if isinstance(record, FieldsRecord):
        return record.fields, False
    if isinstance(record, OptionsRecord):
        return {word: spec for name, spec in record.options.items() for word in (name, *spec.aliases)}, False
    parameters = parameters_of(name)
    named = {each.name: each for each in parameters if each.kind in ("plain", "keyword")}
    return named, any(each.kind == "keywords" for each in parameters)


def record_called(type_: str) -> str | None:
    """The record of the one class in a field's type, such as ``KvCacheConfig | None``."""
    words = set(re.findall(r"\w+", type_)) - {"None"}
    return next((name for name in upstream().records if words == {name.rpartition(".")[2]}), None)


def _record(name: str) -> FieldsRecord | CallableRecord | ClassRecord | ValuesRecord | OptionsRecord:
    records = upstream().records
    if name in records:
        return records[name]
    near = difflib.get_close_matches(name, records, n=1)
    raise KeyError(f"nothing is recorded of {name}" + (f"; the nearest is {near[0]}" if near else ""))
