"""The processes of other ranks than the first: they follow, and say in one line why they cannot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_configs import compiled_engine

from roundhouse.build.engine import MANIFEST, Engine, write_manifest
from roundhouse.serve.benchmark import loop_process
from roundhouse.serve.benchmark.loop_driver import LoopDriver
from roundhouse.serve.process import main as engine_process
from roundhouse.serve.runtimes.tensorrt_llm import follower, load
from roundhouse.serve.settings import EngineSettings, Overrides

Main = Callable[[list[str]], int]


@pytest.fixture
def engine(tiny_engine: Engine, tmp_path: Path) -> Engine:
    """Of two ranks."""
    folder = tmp_path / "engine"
    folder.mkdir()
    made = compiled_engine(tiny_engine, folder, tp=2)
    write_manifest(folder, made.manifest)
    return made


@pytest.mark.parametrize(
    ("main", "more"), [(engine_process.main, ["--sockets", "sockets"]), (loop_process.main, ["--settings", "{}"])]
)
@pytest.mark.parametrize("loads", [True, False])
def test_another_rank_follows_and_does_nothing_else(
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    main: Main,
    more: list[str],
    loads: bool,
) -> None:
    """It opens no sockets and reads no wishes: rank 0 does."""
    followed: list[str] = []
    watched: list[bool] = []
    monkeypatch.setattr(follower, "end_with_launcher", lambda: watched.append(True))  # pytest's own parent is none
    if loads:
        monkeypatch.setattr(load, "follow_engine", lambda engine: followed.append(engine.manifest.id))
    else:
        (engine.folder / "compiled" / "config.json").unlink()
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    monkeypatch.chdir(engine.folder.parent)
    assert main(["--engine", str(engine.folder), *more]) == (0 if loads else 1)
    assert watched == [True]
    assert followed == ([engine.manifest.id] if loads else [])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == (
        []
        if loads
        else [f"roundhouse: {engine.folder}/compiled/config.json: No such file or directory Build the engine again."]
    )
    assert sorted(path.name for path in engine.folder.parent.iterdir()) == ["engine"]


def test_a_follower_ends_when_its_launcher_is_killed() -> None:
    follows = "import time; from roundhouse.serve.runtimes.tensorrt_llm.follower import end_with_launcher as end; end(); "
    follows += "print('follows', flush=True); time.sleep(600)"
    launches = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {follows!r}])"
    with subprocess.Popen([sys.executable, "-c", launches], stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == b"follows\n"
        launcher.kill()
        assert launcher.stdout.read() == b""  # comes to its end when nobody holds the other end any more


def test_a_bare_loop_of_several_ranks_is_started_like_a_served_one(engine: Engine) -> None:
    settings = EngineSettings.for_engine(engine, Overrides(), free_memory=1 << 30)
    command = LoopDriver(engine, settings)._command
    assert command[:8] == ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2", sys.executable, "-P"]
    assert (engine.folder / MANIFEST).is_file()
