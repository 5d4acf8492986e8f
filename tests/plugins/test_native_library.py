"""The cache of compiled kernels: what is compiled when, by whom, and what a compiler that fails leaves behind."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roundhouse.errors import SetupError
from roundhouse.plugins import native_library
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.plugins.native_library import compiled_library, find_compiler

COMPILER = """#!/bin/sh
if [ "$1" = --version ]; then cat "{folder}/version"; exit 0; fi
echo "$@" >> "{folder}/calls"
{then}
"""
WRITES = 'while [ "$1" != -o ]; do shift; done\necho compiled > "$2"'


class FakeCompiler:
    """A script that counts its calls."""

    def __init__(self, folder: Path, then: str = WRITES) -> None:
        self.folder = folder
        folder.mkdir()
        self.path = folder / "c++"
        self.path.write_text(COMPILER.format(folder=folder, then=then))
        self.path.chmod(0o755)
        self.version("fake 1.0")

    def version(self, text: str) -> None:
        (self.folder / "version").write_text(text + "\n")

    @property
    def calls(self) -> int:
        log = self.folder / "calls"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompiler:
    made = FakeCompiler(tmp_path / "a compiler")
    monkeypatch.setenv("CXX", f"'{made.path}'")
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "the cache" / "native"


def test_a_second_load_does_not_compile(fake: FakeCompiler, cache: Path) -> None:
    first = compiled_library(cache)
    assert first.read_text() == "compiled\n"
    assert compiled_library(cache) == first
    assert fake.calls == 1


def test_another_source_flag_compiler_version_or_cpu_is_compiled_anew(
    fake: FakeCompiler, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [compiled_library(cache)]
    sources = shutil.copytree(native_library.SOURCES, tmp_path / "sources")
    monkeypatch.setattr(native_library, "SOURCES", sources)
    assert compiled_library(cache) == made[0]
    header = sources / "span.h"
    header.write_text(header.read_text() + "// changed\n")
    made.append(compiled_library(cache))
    monkeypatch.setattr(native_library, "FLAGS", (*native_library.FLAGS, "-g"))
    made.append(compiled_library(cache))
    fake.version("fake 2.0")
    made.append(compiled_library(cache))
    monkeypatch.setattr(native_library, "_cpu_features", lambda: "another CPU")
    made.append(compiled_library(cache))
    assert len(set(made)) == fake.calls == 5
    assert all(path.exists() for path in made)


def test_two_processes_at_once_compile_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = FakeCompiler(tmp_path / "slow", then="sleep 0.5\n" + WRITES)
    monkeypatch.setenv("CXX", str(slow.path))
    code = (
        "import sys; from pathlib import Path; from roundhouse.plugins.native_library import compiled_library; "
        "print(compiled_library(Path(sys.argv[1])).read_text())"
    )
    command = [sys.executable, "-c", code, str(cache)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in processes] == ["compiled"] * 3
    assert slow.calls == 1


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ("for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; exit 1", "line 4\nline 5\nline 6\nline 7\nline 8\nline 9"),
        ("exit 3", "exit code 3"),
        ("exit 0", "exit code 0"),
        (WRITES + "\necho no space left >&2; exit 1", "no space left"),
    ],
)
def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, then: str, message: str
) -> None:
    broken = FakeCompiler(tmp_path / "broken", then=then)
    monkeypatch.setenv("CXX", str(broken.path))
    with pytest.raises(SetupError) as failed:
        compiled_library(cache)
    assert failed.value.message == f"fake 1.0 could not compile the kernels: {message}"
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    broken.path.write_text(COMPILER.format(folder=broken.folder, then=WRITES))
    assert compiled_library(cache).exists()  # once it works, it is asked again


def test_without_a_compiler_the_reason_is_that(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="no C\\+\\+ compiler found") as failed:
        compiled_library(cache)
    assert "CXX" in (failed.value.hint or "")
    monkeypatch.setenv("CXX", "nowhere-cc -fast")
    with pytest.raises(SetupError, match="CXX=nowhere-cc -fast: no such command"):
        find_compiler()
    monkeypatch.setenv("CXX", 'g++ "')
    with pytest.raises(SetupError, match='CXX=g\\+\\+ ": No closing quotation'):
        find_compiler()


def test_a_compiler_that_does_not_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho broken installation >&2\nexit 1\n")
    mute.chmod(0o755)
    monkeypatch.setenv("CXX", str(mute))
    with pytest.raises(SetupError, match="--version failed: broken installation"):
        find_compiler()


def test_a_cache_that_cannot_be_written_is_named(fake: FakeCompiler, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=f"cannot keep compiled kernels in {tmp_path}/file/native: Not a directory"):
        compiled_library(tmp_path / "file" / "native")


@pytest.mark.parametrize("call", ["exists", "mkdir"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_cache_that_may_not_be_read_or_written_is_named(
    fake: FakeCompiler, cache: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, call, refuse)
    with pytest.raises(SetupError, match=f"cannot keep compiled kernels in .*: {os.strerror(code)}"):
        compiled_library(cache)


def test_a_library_that_cannot_be_loaded_is_named(fake: FakeCompiler, cache: Path) -> None:
    with pytest.raises(SetupError, match="the compiled kernels cannot be loaded") as failed:
        load_kernels(cache)
    assert failed.value.hint == f"Delete {compiled_library(cache)} and try again."


def test_other_systems_are_told_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SetupError, match="on Linux only, not on darwin"):
        compiled_library(cache)
