"""The ahead-of-time plugin up to TensorRT's door: the kernel's file, its arguments, its launch."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded_tensorrt import TensorDesc, record_tensorrt

from roundhouse.errors import SetupError
from roundhouse.plugins.native_library import SOURCES
from roundhouse.plugins.tensorrt_aot import KERNEL, PLUGIN_ID, GuardKernel, read_kernel, register_page_guard

INPUTS = ("page_table", "page_count", "expected_tags", "page_tags")
PTX = """.version 9.0
.target sm_80
.visible .entry rh_page_guard_kernel(
	.param .u64 rh_page_guard_kernel_param_0
)
.maxntid 256
{
"""


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """A process registers once; each test is a new one."""
    register_page_guard.cache_clear()


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Any:
    return record_tensorrt(monkeypatch, {})


def test_the_kernel_s_arguments_are_inputs_then_numbers_then_the_output() -> None:
    source = (SOURCES / "cuda" / "page_guard.cuh").read_text()
    found = re.search(KERNEL + r"\((.*?)\)", source, re.DOTALL)
    assert found is not None
    assert re.findall(r"(\w+)(?:,|$)", found[1]) == [*INPUTS, "columns", "pages", "first_bad"]


def test_the_ptx_tells_its_threads(tmp_path: Path) -> None:
    (tmp_path / "page_guard.ptx").write_text(PTX)
    assert read_kernel(tmp_path / "page_guard.ptx") == GuardKernel(PTX.encode(), 256)


def test_a_file_without_the_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.ptx").write_text(PTX.replace("page_guard", "other"))
    for name, message in (("other.ptx", "does not hold the kernel"), ("none.ptx", "No such file")):
        with pytest.raises(SetupError, match=message) as failed:
            read_kernel(tmp_path / name)
        assert failed.value.hint == "docs/native.md says how page_guard.ptx is built."


def test_a_row_is_a_block_and_sizes_are_symbols(recorded: Any) -> None:
    register_page_guard(GuardKernel(b"the ptx", 128))
    assert set(recorded.registered) == {f"{part} {PLUGIN_ID}" for part in ("register", "autotune", "aot_impl")}
    inputs = (TensorDesc("B", "M"), TensorDesc("B"), TensorDesc("B", "M"), TensorDesc("P"))
    assert recorded.registered[f"register {PLUGIN_ID}"](*inputs).shape_expr == ("B",)
    name, ptx, launch, numbers = recorded.registered[f"aot_impl {PLUGIN_ID}"](*inputs, (TensorDesc("B"),), 0)
    assert (name, ptx) == (KERNEL, b"the ptx")
    assert launch.fields == ("B", 1, 1, 128, 1, 1, 0)
    assert numbers == ["SymInt32(M)", "SymInt32(P)"]


def test_everything_is_int32_and_linear(recorded: Any) -> None:
    register_page_guard(GuardKernel(b"", 128))
    (combination,) = recorded.registered[f"autotune {PLUGIN_ID}"](*[None] * 5)
    assert combination.io_types.split(", ") == ["INT32"] * 5
    assert combination.layouts == "LINEAR"


def test_signatures_are_what_tensorrt_looks_for(recorded: Any) -> None:
    """It compares the names, and the annotations must be types: a string is refused."""
    register_page_guard(GuardKernel(b"", 128))
    for part, rest in (("register", ()), ("autotune", ("outputs",)), ("aot_impl", ("outputs", "tactic"))):
        signature = inspect.signature(recorded.registered[f"{part} {PLUGIN_ID}"])
        assert tuple(signature.parameters) == (*INPUTS, *rest)
        assert not any(isinstance(each.annotation, str) for each in signature.parameters.values())
        assert signature.return_annotation not in (inspect.Signature.empty, "")


def test_a_process_registers_once(recorded: Any) -> None:
    kernel = GuardKernel(b"", 128)
    assert register_page_guard(kernel) is register_page_guard(kernel)


def test_without_tensorrt_or_with_an_old_one_the_reason_is_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(SetupError, match="TensorRT cannot be imported"):
        register_page_guard(GuardKernel(b"", 128))
    record_tensorrt(monkeypatch, {}, ahead_of_time=False)
    with pytest.raises(SetupError, match="no ahead-of-time plugins"):
        register_page_guard(GuardKernel(b"", 128))
