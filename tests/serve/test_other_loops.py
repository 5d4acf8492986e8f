"""Commands that run an engine in our loop say at once that TensorRT-LLM's own loop runs it, whatever else is missing here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from llm_engines import llm_engine
from typer.testing import CliRunner

from roundhouse.__main__ import app
from roundhouse.build.engine import Engine
from roundhouse.errors import UsageError

_WHY = "is for the trtllm-pytorch target, whose own loop runs it"


@pytest.fixture(scope="module")
def upstream_s(tiny_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llm_engine(tiny_engine, tmp_path_factory.mktemp("llm")).folder


@pytest.mark.parametrize(
    "command",
    [["serve"], ["generate", "--raw"], ["drill"], ["bench", "run"], ["bench", "run", "--bare"], ["evaluate", "run"]],
    ids=" ".join,
)
def test_a_target_with_its_own_loop_is_told_first(command: list[str], upstream_s: Path, tmp_path: Path) -> None:
    prompt = ["Hello"] if "generate" in command else []
    result = CliRunner().invoke(app, [*command, str(upstream_s), *prompt, "--home", str(tmp_path)])
    assert isinstance(result.exception, UsageError), result.output
    assert _WHY in result.exception.message
    assert list(tmp_path.iterdir()) == []


def test_the_engine_process_says_it_too(upstream_s: Path, tmp_path: Path) -> None:
    call = [sys.executable, "-m", "roundhouse.serve.process.main", "--engine", str(upstream_s), "--sockets", str(tmp_path)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # it ends with its stdin
        assert process.stderr is not None
        assert _WHY in process.stderr.read()
    assert process.returncode != 0
