"""The guard's engine up to TensorRT's door: what is asked of it, in which order."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recorded_tensorrt import record_tensorrt

from roundhouse.errors import BuildError, SetupError
from roundhouse.plugins.tensorrt_aot import register_page_guard
from roundhouse.plugins.tensorrt_guard import GuardLimits, build_guard_engine

LIMITS = GuardLimits(rows=64, columns=4096, pages=10_000)
LIBRARY = Path("libroundhouse_kv_page_guard.so")
INPUTS = {"page_table": (-1, -1), "page_count": (-1,), "expected_tags": (-1, -1), "page_tags": (-1,)}
PTX = ".entry rh_page_guard_kernel()\n.maxntid 256\n"


@pytest.fixture
def answers() -> dict[str, Any]:
    tensor = SimpleNamespace(name=None)
    return {
        "add_input": lambda name, *rest: name,
        "get_output": tensor,
        "build_serialized_network": b"an engine",
        "get_creator": None,
    }


def calls(recorded: Any, name: str) -> list[tuple[Any, ...]]:
    return [arguments for called, *arguments in recorded.calls if called == name]


def test_sizes_are_dynamic_up_to_the_limits(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    creators = iter([None, SimpleNamespace(create_plugin=lambda name, fields, phase: (name, fields, phase))])
    recorded = record_tensorrt(monkeypatch, answers | {"get_creator": lambda *key: next(creators)})
    assert build_guard_engine(LIBRARY, LIMITS) == b"an engine"
    assert calls(recorded, "add_input") == [[name, "int32", shape] for name, shape in INPUTS.items()]
    assert calls(recorded, "set_shape") == [
        ["page_table", (1, 1), (64, 4096), (64, 4096)],
        ["page_count", (1,), (64,), (64,)],
        ["expected_tags", (1, 1), (64, 4096), (64, 4096)],
        ["page_tags", (1,), (10_000,), (10_000,)],
    ]
    assert calls(recorded, "load_library") == [[str(LIBRARY)]]
    assert calls(recorded, "get_creator") == [["KvPageGuard", "1", ""]] * 2
    assert calls(recorded, "add_plugin_v3") == [[list(INPUTS), [], ("KvPageGuard", (), "build")]]
    assert calls(recorded, "mark_output") == [[answers["get_output"]]]
    assert answers["get_output"].name == "first_bad"


def test_a_library_that_is_loaded_already_is_not_loaded_again(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    creator = SimpleNamespace(create_plugin=lambda *arguments: "plugin")
    recorded = record_tensorrt(monkeypatch, answers | {"get_creator": creator})
    build_guard_engine(LIBRARY, LIMITS)
    assert calls(recorded, "load_library") == []


def test_from_ptx_the_engine_carries_the_kernel(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], tmp_path: Path
) -> None:
    register_page_guard.cache_clear()
    (tmp_path / "page_guard.ptx").write_text(PTX)
    recorded = record_tensorrt(monkeypatch, answers)
    build_guard_engine(tmp_path / "page_guard.ptx", LIMITS)
    assert calls(recorded, "add_plugin") == [[("plugin of", *INPUTS), ("aot", True)]]
    assert calls(recorded, "load_library") == calls(recorded, "add_plugin_v3") == []


def test_what_goes_wrong_is_said(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(SetupError, match="TensorRT cannot be imported"):
        build_guard_engine(LIBRARY, LIMITS)
    record_tensorrt(monkeypatch, answers)
    with pytest.raises(SetupError, match="gave TensorRT no plugin KvPageGuard"):
        build_guard_engine(LIBRARY, LIMITS)
    creator = SimpleNamespace(create_plugin=lambda *arguments: "plugin")
    record_tensorrt(monkeypatch, answers | {"get_creator": creator, "build_serialized_network": None})
    with pytest.raises(BuildError, match="could not build the page guard's engine"):
        build_guard_engine(LIBRARY, LIMITS)
