"""What `roundhouse doctor` says of the native kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.plugins.native_library import find_compiler
from roundhouse.serve.doctor import Finding, diagnose


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
