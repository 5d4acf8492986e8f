from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roundhouse.errors import SetupError
from roundhouse.serve.leftovers import owned_name
from roundhouse.serve.triton import locate
from roundhouse.serve.triton.locate import check_numpy, find_triton
from roundhouse.serve.triton.wheel import WheelTriton, lay_out

HERE = f"3.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("triton", "numpy"),
    [("2.51.0", "1.26.4"), ("2.52.0", "1.24.0"), ("2.53.0", "2.0.0"), ("3.0.0", "2.3.1"), ("unknown", "1.26.4")],
)
def test_numpy_that_fits(triton: str, numpy: str) -> None:
    check_numpy(triton, numpy)


@pytest.mark.parametrize(
    ("triton", "numpy"), [("2.51.0", "2.0.0"), ("2.52.9", "2.3.1"), ("unknown", "2.0.0"), ("2.9.0", "10.0")]
)
def test_numpy_that_corrupts_tensors_is_refused(triton: str, numpy: str) -> None:
    with pytest.raises(SetupError, match="corrupts tensors") as caught:
        check_numpy(triton, numpy)
    assert "numpy==1.26.4" in (caught.value.hint or "")


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Triton."""
    monkeypatch.delenv("ROUNDHOUSE_TRITON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(locate, "_CONTAINER", tmp_path / "none")
    monkeypatch.setattr(locate, "find_wheel", lambda: None)
    return tmp_path


def install(root: Path, *, python: str = HERE, version: str | None = "2.60.0") -> Path:
    """A server in Triton's layout; the stub names its Python as a linked library does."""
    binary = root / "bin" / "tritonserver"
    stub = root / "backends" / "python" / "triton_python_backend_stub"
    for path in (binary, stub):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    (root / "lib").mkdir()
    stub.write_bytes(b"\x7fELF\0libpython" + python.encode() + b".so.1.0\0")
    if version:
        (root / "TRITON_VERSION").write_text(version + "\n")
    return binary


def test_no_triton_says_how_to_get_one(nowhere: Path) -> None:
    with pytest.raises(SetupError, match="no Triton") as caught:
        find_triton(nowhere)
    assert "nvidia-pytriton" in (caught.value.hint or "")


def test_the_variable_comes_first(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = install(nowhere / "given")
    install(nowhere / "path")
    monkeypatch.setenv("PATH", str(nowhere / "path" / "bin"))
    assert find_triton(nowhere).source == "PATH"
    monkeypatch.setenv("ROUNDHOUSE_TRITON", str(binary))
    found = find_triton(nowhere)
    assert (found.binary, found.version, found.source) == (binary, "2.60.0", "ROUNDHOUSE_TRITON")
    assert found.backend_directory == nowhere / "given" / "backends"
    assert nowhere / "given" / "lib" in found.library_dirs


def test_a_variable_that_points_nowhere_is_an_error(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDHOUSE_TRITON", "/nowhere/tritonserver")
    with pytest.raises(SetupError, match="/nowhere/tritonserver, which is not a file"):
        find_triton(nowhere)


def test_a_stub_for_another_python_is_refused(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDHOUSE_TRITON", str(install(nowhere / "given", python="3.8")))
    with pytest.raises(SetupError, match=r"is for Python 3\.8"):
        find_triton(nowhere)


def test_a_server_that_does_not_say_its_version_is_unknown(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDHOUSE_TRITON", str(install(nowhere / "given", version=None)))
    assert find_triton(nowhere).version == "unknown"


@pytest.fixture
def wheel(tmp_path: Path) -> WheelTriton:
    """A wheel's files, without the wheel."""
    folder = tmp_path / "wheel"
    folder.mkdir()
    files = [folder / name for name in ("libtriton_python.so", "triton_python_backend_utils.py", "triton_python_backend_stub")]
    for file in files:
        file.write_text(file.name)
    return WheelTriton(
        version="0.7.0",
        triton_version="2.51.0",
        binary=folder / "tritonserver",
        stub=files[2],
        backend_files=(files[0], files[1]),
        libraries=folder,
    )


def test_the_wheel_is_laid_out_as_triton_wants_it(wheel: WheelTriton, tmp_path: Path) -> None:
    backends = lay_out(wheel, tmp_path / "cache")
    assert backends == tmp_path / "cache" / f"triton-2.51.0-py{HERE}"
    assert {path.name for path in (backends / "python").iterdir()} == {
        "libtriton_python.so",
        "triton_python_backend_utils.py",
        "triton_python_backend_stub",
    }


def test_a_damaged_layout_is_made_again(wheel: WheelTriton, tmp_path: Path) -> None:
    backends = lay_out(wheel, tmp_path / "cache")
    (backends / "python" / "libtriton_python.so").write_text("half")
    assert lay_out(wheel, tmp_path / "cache") == backends
    assert (backends / "python" / "libtriton_python.so").read_text() == "libtriton_python.so"


def test_what_killed_lay_outs_left_goes_and_running_ones_stay(wheel: WheelTriton, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    script = "from roundhouse.serve.leftovers import owned_name; print(owned_name())"
    dead = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    running = owned_name()
    for name in (dead, running):
        (cache / name / "python").mkdir(parents=True)
    backends = lay_out(wheel, cache)
    assert {path.name for path in cache.iterdir()} == {running, backends.name}


def test_many_may_lay_it_out_at_once(wheel: WheelTriton, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: lay_out(wheel, tmp_path / "cache"), range(16)))
    assert len(found) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"triton-2.51.0-py{HERE}"]
