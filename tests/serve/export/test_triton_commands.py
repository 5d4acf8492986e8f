from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from llm_engines import llm_engine
from typer.testing import CliRunner

from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError
from roundhouse.serve.export.triton_commands import add_triton_commands

export = typer.Typer()
add_triton_commands(export)


@pytest.fixture
def engine(tiny_engine: Engine, tmp_path: Path) -> Engine:
    """A tiny engine for the target `trtllm-pytorch`."""
    return llm_engine(tiny_engine, tmp_path / "engine")


def run(*words: str) -> str:
    result = CliRunner().invoke(export, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_repository_is_written_and_told_of(engine: Engine, tmp_path: Path) -> None:
    text = run("triton", str(engine.folder), "--output", str(tmp_path / "models"), "--engine-folder", "/models/e1")
    assert f"{engine.manifest.name}, guard tags" in text
    assert "Start: tritonserver --model-repository=" in text
    model = tmp_path / "models" / engine.manifest.name / "1" / "model.yaml"
    assert "model: /models/e1/checkpoint\n" in model.read_text()


def test_what_was_done_can_be_read_by_programs(engine: Engine, tmp_path: Path) -> None:
    words = ["trtllm-serve", str(engine.folder), "--output", str(tmp_path / "out"), "--guard", "off", "--json"]
    done = json.loads(run(*words))
    assert done["guard"] == "off"
    assert done["written"] == str(tmp_path / "out" / "llm.yaml")
    assert done["start"].startswith(f"trtllm-serve {engine.checkpoint} ")


def test_without_an_output_the_repository_is_made_here(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("triton", str(engine.folder), "--max-batch-size", "3")
    assert "max_batch_size: 3\n" in (tmp_path / "models" / engine.manifest.name / "1" / "model.yaml").read_text()


def test_a_guard_that_is_none_is_a_mistake_of_usage(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--guard tagz"):
        run("triton", str(engine.folder), "--output", str(tmp_path / "models"), "--guard", "tagz")


@pytest.mark.parametrize("words", [("--python", "/usr/bin/python3"), ("--guard", "off", "--guard-metrics", "0.0.0.0:8003")])
def test_an_option_that_would_do_nothing_is_a_mistake_of_usage(engine: Engine, tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"--python: |--guard-metrics: "):
        run("triton", str(engine.folder), "--output", str(tmp_path / "models"), *words)
    assert not (tmp_path / "models").exists()
