"""Recording, from a small package that is made like TensorRT-LLM."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import TypeVar

import pytest
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.trtllm import recording
from roundhouse.build.trtllm.recording import record_installed, recording_text
from roundhouse.build.trtllm.upstream import (
    CallableRecord,
    ClassRecord,
    FieldsRecord,
    OptionsRecord,
    Upstream,
    ValuesRecord,
    read_upstream,
    upstream,
)
from roundhouse.errors import SetupError

MODULE = """
    import argparse, enum
    from dataclasses import dataclass, field
    from typing import Any, Literal, Optional, Union

    import click
    from pydantic import BaseModel, Field

    class Algorithm(str, enum.Enum):
        FP8 = "FP8"
        NVFP4 = "NVFP4"

    class Level(enum.Enum):
        NONE = 1

    class Plugins(BaseModel):
        dtype: str = "float16"
        gemm: Optional[Literal["auto", "fp8"]] = Field(default=None, description="one that we do not take over")
        algorithm: Optional[Algorithm] = None

    class Arguments(BaseModel):
        model: Union[str, int]
        plugins: Plugins = Field(default_factory=Plugins)
        level: Level = Level.NONE

    @dataclass
    class Info:
        name: str
        shape: tuple
        sizes: "Optional[list[int]]" = None
        more: dict = field(default_factory=dict)

    class Manager:
        def __init__(self, config: Any, *, layers: int, dtype=Level.NONE, **kwargs):
            self.impl = config

        def prepare(self, batch, window=None):
            return batch

        @staticmethod
        def read(text):
            return text

        @classmethod
        def of(cls, rank=0):
            return cls(rank, layers=1)

    def build(model, *rest, config=None, worker=Manager):
        return model

    MODELS = {"LlamaForCausalLM": Manager, "Qwen3ForCausalLM": Manager}

    @click.command()
    @click.argument("model")
    @click.option("--tensor_parallel_size", "--tp_size", type=int, default=1)
    @click.option("--backend", type=click.Choice(["pytorch", "tensorrt"]), default="pytorch")
    @click.option("--revision", type=str)
    def serve(model, tensor_parallel_size, backend, revision):
        pass

    def arguments():
        parser = argparse.ArgumentParser()
        parser.add_argument("--output_dir", default="engine_outputs")
        parser.add_argument("--log_level", choices=["info", "error"], default="info")
        parser.add_argument("--paged", default=argparse.SUPPRESS)
        parser.add_argument("--strip_plan", "--strip", action="store_true")
        return parser
"""
SOURCE = {"repository": "made/up", "path": "upstream.py", "commit": "0" * 40, "exact": True}


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A record of the made-up package, before it changed in a few places."""
    package = tmp_path / "tensorrt_llm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "surface.py").write_text(dedent(MODULE))
    (tmp_path / "tensorrt_llm-1.2.2.dist-info").mkdir()
    (tmp_path / "tensorrt_llm-1.2.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorrt_llm\nVersion: 1.2.2\n"
    )
    records = {
        "Plugins": {"kind": "fields", "fields": {"dtype": {"type": "str", "default": "float32"}, "gone": {"type": "int"}}},
        "Arguments": {"kind": "fields", "fields": {"model": {"type": "str"}, "level": {"type": "Level", "default": "NONE"}}},
        "Info": {"kind": "fields", "fields": {"name": {"type": "str"}, "shape": {"type": "tuple"}}, "notes": ["kept"]},
        "Manager": {
            "kind": "class",
            "methods": {"prepare": [{"name": "batch"}], "read": [{"name": "text"}], "of": [], "lost": []},
            "attributes": ["impl"],
        },
        "build": {"kind": "callable", "parameters": [{"name": "model"}, {"name": "config"}]},
        "MODELS": {"kind": "values", "values": ["LlamaForCausalLM", "GPTForCausalLM"]},
        "Algorithm": {"kind": "values", "values": ["FP8", "NVFP4"]},
        "serve": {
            "kind": "options",
            "options": {"tp_size": {"default": 2}, "backend": {"choices": ["pytorch"], "default": "pytorch"}},
        },
        "arguments": {"kind": "options", "options": {"output_dir": {"default": "engine_outputs"}, "fast": {}}},
        "missing.Name": {"kind": "values", "values": []},
    }
    old = json.loads(upstream().model_dump_json())
    old["records"] = {f"tensorrt_llm.surface.{name}": {"source": SOURCE, **record} for name, record in records.items()}
    made = read_upstream(json.dumps(old))
    monkeypatch.setattr(recording, "upstream", lambda: made)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorrt_llm"]:
        del sys.modules[name]


R = TypeVar("R")


def of(kind: type[R], name: str) -> R:
    record = record_installed().upstream.records[f"tensorrt_llm.surface.{name}"]
    assert isinstance(record, kind)
    return record


@pytest.mark.usefixtures("shipped")
def test_pydantic_models_and_dataclasses_are_recorded_by_their_fields() -> None:
    plugins = of(FieldsRecord, "Plugins").fields
    assert plugins["dtype"].default == "float16"
    gemm = plugins["gemm"]
    assert (gemm.type, gemm.default, gemm.choices) == ("str | None", None, ("auto", "fp8", None))
    assert plugins["algorithm"].choices == ("FP8", "NVFP4", None)
    arguments = of(FieldsRecord, "Arguments").fields
    assert arguments["model"].required
    assert arguments["plugins"].factory == "Plugins"
    assert arguments["level"].default == "NONE"
    info = of(FieldsRecord, "Info").fields
    assert info["name"].required
    assert (info["sizes"].type, info["sizes"].default) == ("list[int] | None", None)
    assert info["more"].factory == "dict"


@pytest.mark.usefixtures("shipped")
def test_methods_and_functions_are_recorded_by_their_parameters() -> None:
    manager = of(ClassRecord, "Manager")
    assert manager.attributes == ("impl",)
    assert {name: [each.name for each in parameters] for name, parameters in manager.methods.items()} == {
        "prepare": ["batch", "window"],
        "read": ["text"],
        "of": ["rank"],
    }
    build = of(CallableRecord, "build").parameters
    assert build is not None
    assert [(each.name, each.kind, each.required, each.default) for each in build] == [
        ("model", "plain", True, None),
        ("rest", "arguments", False, None),
        ("config", "keyword", False, None),
        ("worker", "keyword", False, "Manager"),
    ]


@pytest.mark.usefixtures("shipped")
def test_tables_enumerations_and_command_lines_are_recorded() -> None:
    assert of(ValuesRecord, "MODELS").values == ("LlamaForCausalLM", "Qwen3ForCausalLM")
    assert of(ValuesRecord, "Algorithm").values == ("FP8", "NVFP4")
    serve = of(OptionsRecord, "serve").options
    assert (serve["tensor_parallel_size"].default, serve["tensor_parallel_size"].aliases) == (1, ("tp_size",))
    assert serve["backend"].choices == ("pytorch", "tensorrt")
    assert serve["revision"].default is None
    parsed = of(OptionsRecord, "arguments").options
    assert parsed["log_level"].choices == ("info", "error")
    assert (parsed["paged"].default, parsed["strip_plan"].default) == (None, False)
    assert set(parsed) == {"output_dir", "log_level", "paged", "strip_plan"}


@pytest.mark.usefixtures("shipped")
def test_what_changed_is_said_in_words() -> None:
    start = "tensorrt_llm.surface."
    changes = [change.removeprefix(start) for change in record_installed().changes]
    assert changes == [
        "Plugins: field gone is gone",
        "Plugins: field gemm is new",
        "Plugins: field algorithm is new",
        "Plugins: dtype: default 'float32' became default 'float16'",
        "Arguments: field plugins is new",
        "Arguments: model: type str became str | int",
        "Info: field sizes is new",
        "Info: field more is new",
        "Manager: method lost is gone",
        "Manager: of: parameter rank is new",
        "Manager: prepare: parameter window is new",
        "build: parameter rest is new",
        "build: parameter worker is new",
        "build: parameter config is keyword, was plain",
        "build: parameter config: required became default None",
        "MODELS: value GPTForCausalLM is gone",
        "MODELS: value Qwen3ForCausalLM is new",
        "serve: tp_size: default 2 became 1",
        "serve: backend: choice tensorrt is new",
        "serve: option revision is new",
        "arguments: option fast is gone",
        "arguments: option log_level is new",
        "arguments: option paged is new",
        "arguments: option strip_plan is new",
        "missing.Name: cannot be recorded: module 'tensorrt_llm.surface' has no attribute 'missing'",
    ]


@pytest.mark.usefixtures("shipped")
def test_a_recording_says_where_it_is_from_and_keeps_what_it_cannot_see(shipped: Upstream) -> None:
    recorded = record_installed().upstream
    assert recorded.version == "1.2.2"
    info = recorded.records["tensorrt_llm.surface.Info"]
    assert (info.source.repository, info.source.path) == ("tensorrt_llm 1.2.2, installed", "tensorrt_llm/surface")
    assert info.notes == ("kept",)
    assert recorded.engine_inputs == shipped.engine_inputs
    assert "tensorrt_llm.surface.missing.Name" not in recorded.records


@pytest.mark.usefixtures("shipped")
def test_a_recording_can_be_of_a_few_names_and_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record_installed(["tensorrt_llm.surface.Algorithm"]).changes == ()
    recorded = record_installed().upstream
    again = read_upstream(recording_text(recorded))
    assert again == recorded
    monkeypatch.setattr(recording, "upstream", lambda: again)
    assert record_installed().changes == ()


def test_the_shipped_file_is_written_as_a_recording_is() -> None:
    path = Path(recording.__file__).with_name("upstream.json")
    assert path.read_text(encoding="utf-8") == recording_text(upstream())


@pytest.mark.usefixtures("shipped")
def test_a_package_that_cannot_be_imported_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "tensorrt_llm" / "__init__.py").write_text("raise OSError('libcuda.so.1 is missing')")
    with pytest.raises(SetupError, match=r"1\.2\.2 cannot be imported: libcuda"):
        record_installed()


@pytest.mark.usefixtures("shipped")
def test_the_command_writes_the_record_and_tells_the_changes(tmp_path: Path) -> None:
    output = tmp_path / "upstream.json"
    result = CliRunner().invoke(app, ["trtllm", "record", "--output", str(output)])
    assert result.exit_code == 0, result.output
    assert "tensorrt_llm.surface.Plugins: field gone is gone" in result.output
    assert read_upstream(output.read_text()).version == "1.2.2"
    as_json = json.loads(CliRunner().invoke(app, ["trtllm", "record", "--json"]).output)
    assert (as_json["shipped"], as_json["installed"]) == ("1.2.1", "1.2.2")


def test_without_tensorrt_llm_the_command_refuses() -> None:
    with pytest.raises(SetupError, match="not installed"):
        record_installed()


def other_python(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    monkeypatch.setenv("ROUNDHOUSE_TRTLLM_PYTHON", str(python))


def test_it_is_recorded_in_tensorrt_llm_s_own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = '[ "$1" = -m ] && echo "$@" "${ROUNDHOUSE_TRTLLM_PYTHON-here}" && exit 3; exit 0'
    other_python(tmp_path, monkeypatch, says)
    result = CliRunner().invoke(app, ["trtllm", "record", "--output", "new.json", "--json"])
    assert (result.exit_code, result.output) == (3, "-m roundhouse trtllm record --output new.json --json here\n")


def test_a_python_without_this_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_python(tmp_path, monkeypatch, "exit 1")
    result = CliRunner().invoke(app, ["trtllm", "record"])
    assert isinstance(result.exception, SetupError)
    assert result.exception.message == f"{tmp_path}/python cannot import this package"
