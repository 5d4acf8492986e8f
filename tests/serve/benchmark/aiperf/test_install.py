"""Installing aiperf: whole or not at all. A wheel of nothing takes its place, so no network is needed."""

from __future__ import annotations

import re
import threading
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.serve.benchmark.aiperf import install
from roundhouse.serve.benchmark.aiperf.install import install_aiperf
from roundhouse.serve.benchmark.aiperf.locate import PINNED, environment_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("ROUNDHOUSE_AIPERF", raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return Home(tmp_path / "a home")


def wheel(folder: Path) -> Path:
    """A package with a command ``aiperf`` that tells a version, and nothing else."""
    path = folder / f"aiperf-{PINNED}-py3-none-any.whl"
    about = f"aiperf-{PINNED}.dist-info"
    content = {
        "aiperf.py": f"def main():\n    print({PINNED!r})\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: aiperf\nVersion: {PINNED}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\naiperf = aiperf:main\n",
    }
    content[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*content, f"{about}/RECORD"])
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in content.items():
            packed.writestr(name, text)
    return path


def visible(folder: Path) -> list[str]:
    """What lies there, but the lock."""
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def test_it_is_installed_once_and_runs_from_its_own_place(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{wheel(tmp_path)}\n", encoding="utf-8")
    monkeypatch.setattr(install, "_REQUIREMENTS", requirements)
    (environment_folder(home).parent / f".aiperf-{PINNED}.killed.new").mkdir(parents=True)  # of a set-up that was killed
    said: list[str] = []
    aiperf = install_aiperf(home, said.append)
    assert aiperf.executable == environment_folder(home) / "bin" / "aiperf"
    assert aiperf.version == PINNED
    assert "about 0.5 GB" in said[0]
    assert visible(environment_folder(home).parent) == [f"aiperf-{PINNED}"]
    assert len(said) == 2, "what pip says of each package is nobody's business"
    again: list[str] = []
    assert install_aiperf(home, again.append) == aiperf
    assert len(again) == 1


def test_one_that_fails_leaves_nothing_and_says_why(home: Home) -> None:
    with pytest.raises(SetupError, match="aiperf could not be installed: Could not find a version") as caught:
        install_aiperf(home, lambda line: None)
    assert "PIP_INDEX_URL" in str(caught.value.hint)
    assert visible(environment_folder(home).parent) == []


def test_two_at_once_install_it_once(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    both = threading.Barrier(2)
    waits = threading.Event()

    def make(folder: Path, say: Callable[[str], None]) -> None:
        made.append(folder)
        assert waits.wait(60), "the other one has to hear that it waits"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "aiperf").write_text(f"#!/bin/sh\necho {PINNED}\n")
        (folder / "bin" / "aiperf").chmod(0o755)

    def hear(line: str) -> None:
        if "waiting for it" in line:
            waits.set()

    def set_up() -> None:
        both.wait(60)
        install_aiperf(home, hear)

    monkeypatch.setattr(install, "_make", make)
    threads = [threading.Thread(target=set_up) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert made == [environment_folder(home)]


def test_everything_that_is_installed_is_pinned() -> None:
    text = files("roundhouse.serve.benchmark.aiperf").joinpath("requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert f"aiperf=={PINNED}" in lines
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
