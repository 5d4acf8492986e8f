"""The runner of the guard's engine up to TensorRT's door: what is refused before it, and what it is given."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from guard_tables import Tables, long_tables, tables
from hypothesis import assume, given
from hypothesis import strategies as st
from recorded_tensorrt import record_tensorrt

from roundhouse.errors import ServeError, SetupError
from roundhouse.plugins.page_tag import first_bad_columns
from roundhouse.plugins.tensorrt_guard import GuardLimits
from roundhouse.plugins.tensorrt_guard_engine import ALIGNMENT, GuardEngine, placed

LIMITS = GuardLimits(rows=5, columns=3000, pages=5000)
LIBRARY, PTX = Path("libroundhouse_kv_page_guard.so"), Path("page_guard.ptx")
STREAM = 0x5EED


class Context:
    """An execution context that reads the addresses it was given, as the plugin would on a GPU."""

    def __init__(self, refuses: str | None = None) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.streams: list[int] = []
        self._refuses = refuses

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shapes[name] = shape
        return self._refuses != f"shape of {name}"

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self.addresses[name] = memory
        return self._refuses != f"address of {name}"

    def execute_async_v3(self, stream_handle: int) -> bool:
        self.streams.append(stream_handle)
        names = ("page_table", "page_count", "expected_tags", "page_tags")
        first_bad = self._at("first_bad", self.shapes["page_count"])
        first_bad[:] = first_bad_columns(*(self._at(name, self.shapes[name]) for name in names))
        return self._refuses != "launch"

    def _at(self, name: str, shape: tuple[int, ...]) -> Any:
        pointer = ctypes.cast(self.addresses[name], ctypes.POINTER(ctypes.c_int32))
        return np.ctypeslib.as_array(pointer, shape)


def loaded(monkeypatch: pytest.MonkeyPatch, context: Context | None = None, plugin: Path = PTX) -> tuple[GuardEngine, Any]:
    recorded = record_tensorrt(monkeypatch, {"create_execution_context": context or Context(), "get_creator": "a creator"})
    return GuardEngine(b"an engine", LIMITS, plugin), recorded


def at_multiple(values: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor that lies as torch puts tensors on a GPU."""
    spare = torch.empty(values.size + ALIGNMENT // 4, dtype=torch.int32)
    tensor = spare[-spare.data_ptr() % ALIGNMENT // 4 :][: values.size].view(values.shape)
    return tensor.copy_(torch.from_numpy(values))


def example() -> Tables:
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    tags = np.arange(1, 7, dtype=np.int32)
    return table, np.array([3, 2], dtype=np.int32), tags[table], tags


def enqueue(engine: GuardEngine, inputs: Tables) -> torch.Tensor:
    first_bad = at_multiple(np.full(len(inputs[1]), -9, dtype=np.int32))
    engine.enqueue(*(at_multiple(each) for each in inputs), first_bad=first_bad, stream=STREAM)
    return first_bad


@given(inputs=st.one_of(tables(), long_tables()))
def test_the_context_is_given_every_table_where_it_lies(inputs: Tables) -> None:
    assume(all(each.size for each in inputs))
    context = Context()
    with pytest.MonkeyPatch.context() as monkeypatch:
        engine, _ = loaded(monkeypatch, context)
    np.testing.assert_array_equal(enqueue(engine, inputs).numpy(), first_bad_columns(*inputs))
    assert context.streams == [STREAM]
    assert context.shapes == dict(
        zip(("page_table", "page_count", "expected_tags", "page_tags"), (each.shape for each in inputs), strict=True)
    )


def test_shapes_follow_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = loaded(monkeypatch)
    table, count, expected, tags = example()
    assert enqueue(engine, (table, count, expected, tags)).tolist() == [-1, -1]
    expected[1, 1] += 1
    assert enqueue(engine, (table, count, expected, tags)).tolist() == [-1, 1]
    assert enqueue(engine, (table[1:], count[1:], expected[1:], tags)).tolist() == [1]


def test_a_library_is_loaded_before_the_engine_and_ptx_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    creators = iter([None, "a creator"])
    answers = {"create_execution_context": Context(), "get_creator": lambda *key: next(creators)}
    recorded = record_tensorrt(monkeypatch, answers)
    GuardEngine(b"an engine", LIMITS, LIBRARY)
    called = [name for name, *_ in recorded.calls]
    assert called == ["get_creator", "load_library", "get_creator", "deserialize_cuda_engine", "create_execution_context"]
    assert ("deserialize_cuda_engine", b"an engine") in recorded.calls
    _, recorded = loaded(monkeypatch, plugin=PTX)
    assert [name for name, *_ in recorded.calls] == ["deserialize_cuda_engine", "create_execution_context"]


def test_an_engine_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("deserialize_cuda_engine", "create_execution_context"):
        record_tensorrt(monkeypatch, {missing: None})
        with pytest.raises(ServeError, match="does not take the page guard's engine") as failed:
            GuardEngine(b"an engine", LIMITS, PTX)
        assert "built with" in str(failed.value.hint)
    record_tensorrt(monkeypatch, {"get_creator": None})
    with pytest.raises(SetupError, match="gave TensorRT no plugin"):
        GuardEngine(b"an engine", LIMITS, LIBRARY)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(SetupError, match="TensorRT cannot be imported"):
        GuardEngine(b"an engine", LIMITS, PTX)


@pytest.mark.parametrize(
    ("name", "shape", "told"),
    [
        ("page_table", (6, 3), "page_table is 6 × 3, and the page guard's engine takes 1 to 5 × 3,000"),
        ("page_table", (1, 3001), "page_table is 1 × 3,001, "),
        ("page_table", (1, 0), "page_table is 1 × 0, "),
        ("page_tags", (5001,), "page_tags is 5,001, and the page guard's engine takes 1 to 5,000"),
        ("page_tags", (0,), "page_tags is 0, "),
    ],
)
def test_what_the_engine_was_not_built_for_never_reaches_it(
    monkeypatch: pytest.MonkeyPatch, name: str, shape: tuple[int, ...], told: str
) -> None:
    context = Context()
    engine, _ = loaded(monkeypatch, context)
    rows, columns = shape if name == "page_table" else (1, 1)
    table, tags = np.zeros((rows, columns), np.int32), np.zeros(shape if name == "page_tags" else 1, np.int32)
    with pytest.raises(ServeError) as failed:
        enqueue(engine, (table, np.zeros(rows, np.int32), table, tags))
    assert told in failed.value.message
    assert "limits" in str(failed.value.hint)
    assert context.streams == []


def test_tensors_that_tensorrt_would_misread_never_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context()
    engine, _ = loaded(monkeypatch, context)
    good = [at_multiple(each) for each in example()]
    answer = at_multiple(np.zeros(2, np.int32))

    def refused(*each: torch.Tensor, first_bad: torch.Tensor = answer) -> str:
        with pytest.raises(ServeError) as failed:
            engine.enqueue(*each, first_bad=first_bad, stream=STREAM)
        return failed.value.message

    with_gaps = at_multiple(np.zeros((2, 6), np.int32))[:, ::2]
    assert refused(with_gaps, *good[1:]) == f"page_table has gaps, or does not lie at a multiple of {ALIGNMENT} bytes"
    assert refused(*good[:3], good[3][1:]).startswith("page_tags has gaps")
    assert refused(*good, first_bad=at_multiple(np.zeros(3, np.int32))[1:]).startswith("first_bad has gaps")
    for other in (at_multiple(np.zeros(3, np.int32)), answer.long()):
        assert "answer must be an int32 tensor" in refused(*good, first_bad=other)
    assert "takes int32 tables" in refused(good[0].long(), *good[1:])
    assert context.streams == []


@pytest.mark.parametrize("what", ["shape of page_count", "address of page_tags", "address of first_bad", "launch"])
def test_what_tensorrt_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    engine, _ = loaded(monkeypatch, Context(refuses=what))
    with pytest.raises(ServeError, match=rf"TensorRT refused the (page guard's )?{what}"):
        enqueue(engine, example())


def test_placed_copies_only_what_it_must() -> None:
    there = at_multiple(np.arange(ALIGNMENT, dtype=np.int32).reshape(2, -1))
    assert placed(there) is there
    assert placed(there[1:]).data_ptr() == there[1:].data_ptr()  # a row of 128 numbers on
    for elsewhere in (there[:, ::2], there.t(), there.flatten()[1:]):
        copied = placed(elsewhere)
        assert copied.is_contiguous()
        assert copied.data_ptr() != elsewhere.data_ptr()
        assert torch.equal(copied, elsewhere)


@given(inputs=tables())
def test_where_a_size_is_0_torch_answers(inputs: Tables) -> None:
    assume(not all(each.size for each in inputs))
    context = Context()
    with pytest.MonkeyPatch.context() as monkeypatch:
        engine, _ = loaded(monkeypatch, context)
    first_bad = engine(*(torch.from_numpy(each) for each in inputs))
    assert first_bad.dtype == torch.int32
    np.testing.assert_array_equal(first_bad.numpy(), first_bad_columns(*inputs))
    assert context.streams == []


def test_tables_on_the_cpu_are_none_of_its_business(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = loaded(monkeypatch)
    inputs = [torch.from_numpy(each) for each in example()]
    with pytest.raises(ServeError, match="takes tables on cuda, not on cpu"):
        engine(*inputs)
    with pytest.raises(ServeError, match="the page guard takes tables of"):
        engine(inputs[0], inputs[1][1:], *inputs[2:])
