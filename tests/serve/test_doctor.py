"""What `roundhouse doctor` says of the native kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.plugins.native_library import find_compiler
from roundhouse.serve.doctor import diagnose
from roundhouse.serve.finding import Finding
from roundhouse.serve.findings_of_trtllm import about_tensorrt_llm


def findings(home: Home) -> dict[str, Finding]:
    return {finding.name: finding for finding in diagnose(home)}


def test_it_says_that_the_kernels_compile_here_and_compiles_them(session_home: Home) -> None:
    try:
        compiler = find_compiler()
    except SetupError as error:
        pytest.skip(str(error))
    found = findings(session_home)
    assert compiler.version in found["C++ compiler"].detail
    assert found["native kernels"].state == "ok"
    (library,) = session_home.kernels.glob("*.so")
    assert library.name in found["native kernels"].detail


def test_it_says_why_they_do_not_compile_and_what_that_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    found = findings(Home(tmp_path))
    assert found["C++ compiler"].state == "absent"
    native = found["native kernels"]
    assert native.state == "limited"
    assert native.detail.startswith(
        "CXX=no-such-compiler: no such command; attention and linears run in plain torch, and a step takes"
    )
    assert "Install g++" in native.remedy


def test_it_says_that_what_is_named_for_tensorrt_llm_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python, plugin = "ROUNDHOUSE_TRTLLM_PYTHON", "ROUNDHOUSE_GUARD_PLUGIN"
    for variable in (python, plugin):
        monkeypatch.delenv(variable, raising=False)
    assert not {python, plugin} & {finding.name for finding in about_tensorrt_llm()}
    monkeypatch.setenv(python, str(tmp_path / "python"))
    monkeypatch.setenv(plugin, str(tmp_path / "guard.ptx"))
    found = {finding.name: finding for finding in about_tensorrt_llm()}
    assert found["target trtllm-pytorch"].detail.endswith("built without TensorRT-LLM and a GPU: --gpu names theirs")
    for variable, words in ((python, "that cannot be run"), (plugin, "guard.ptx is no file")):
        assert (found[variable].state, words in found[variable].detail) == ("limited", True)
        assert found[variable].remedy.endswith("Builds of trtllm-pytorch need it not.")
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "guard.ptx").touch()
    found = {finding.name: finding for finding in about_tensorrt_llm()}
    assert (found[python].state, found[python].detail) == ("limited", f"{tmp_path}/python has no TensorRT-LLM")
    assert (found[plugin].state, found[plugin].detail) == ("ok", str(tmp_path / "guard.ptx"))
    (tmp_path / "python").write_text("#!/bin/sh\necho 1.2.1\n")
    found = {finding.name: finding for finding in about_tensorrt_llm()}
    assert (found[python].state, found[python].detail) == ("ok", f"{tmp_path}/python: TensorRT-LLM 1.2.1")
