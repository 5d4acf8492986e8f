from __future__ import annotations

import queue
import subprocess
import sys
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.serve.engine.request import Chunk, Output, Request, SamplingParams
from roundhouse.serve.process.client import EngineProcess

MAIN = [sys.executable, "-P", "-m", "roundhouse.serve.process.main"]


def start(engine: Path, sockets: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the process with its standard input held open."""
    command = [*MAIN, "--engine", str(engine), "--sockets", str(sockets), *more]
    with subprocess.Popen(["sleep", "300"], stdout=subprocess.PIPE) as parent:
        try:
            return subprocess.run(command, stdin=parent.stdout, capture_output=True, text=True, timeout=120, check=False)
        finally:
            parent.kill()


def test_a_missing_engine_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    ended = start(tmp_path / "nothing", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == f"roundhouse: {tmp_path}/nothing is not an engine: it has no readable engine.json\n"


def test_unknown_settings_are_named(tiny_engine: Engine, tmp_path: Path) -> None:
    ended = start(tiny_engine.folder, tmp_path, "--settings", '{"page_tokns": 4}')
    assert ended.returncode == 1
    assert ended.stderr.startswith("roundhouse: settings: page_tokns: ")
    assert ended.stderr.count("\n") == 1


def test_it_ends_when_its_parent_does(tmp_path: Path) -> None:
    command = [*MAIN, "--engine", str(tmp_path), "--sockets", str(tmp_path)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (0, 1)  # whichever came first: the closed pipe or the missing engine


def test_a_real_engine_answers(tiny_engine: Engine) -> None:
    process = EngineProcess(tiny_engine.folder, overrides_json='{"kv_cache_tokens": 512}')
    ready = process.start()
    try:
        assert ready.engine_id == tiny_engine.manifest.id
        assert ready.pages * ready.page_tokens == 512
        outputs: queue.Queue[Output] = queue.Queue()
        sampling = SamplingParams(max_tokens=5, ignore_eos=True)
        process.submit(Request(request_id="r", prompt="A roundhouse", sampling=sampling), outputs.put)
        while True:
            output = outputs.get(timeout=60)
            assert isinstance(output, Chunk)
            if output.finish_reason is not None:
                break
        assert (output.finish_reason, output.completion_tokens) == ("length", 5)
    finally:
        process.stop()
