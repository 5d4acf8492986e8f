"""TensorRT-LLM's PyTorch backend on a real GPU: exported, served by trtllm-serve with the page check in it, and asked."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from gpu_runs import CHECKOUT, PROMPTS, Workbench, sure_tokens

from roundhouse.serve.engine.tokenizer import load_tokenizer
from roundhouse.serve.probe import problem

Record = Callable[[str, object], None]
_LONGEST_START_S = 900.0
_AT_ONCE, _TOKENS = 16, 128


@contextmanager
def served(bench: Workbench, engine: Any, folder: Path, guard: str) -> Iterator[tuple[str, str]]:
    """Serve an engine as `roundhouse export trtllm-serve` says; gives the URLs of the server and of its page check."""
    port, metrics = free_port(), free_port()
    options = ["--output", str(folder), "--guard", guard, "--host", "127.0.0.1", "--port", str(port)]
    options += ["--guard-metrics", f"127.0.0.1:{metrics}", "--guard-home", str(bench.home)]
    start = bench.roundhouse("export", "trtllm-serve", engine["folder"], *options)["start"]
    url, check = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics}"
    command = [bench.python, "-m", "tensorrt_llm.commands.serve", *shlex.split(start)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
    log = folder / "log"
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream, start_new_session=True)
    try:
        asked = [f"{url}/health", *([f"{check}/ready"] if guard != "off" else [])]
        until = time.monotonic() + _LONGEST_START_S
        while any(not_ready(each) for each in asked):
            assert server.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, log.read_text()[-4000:]
            time.sleep(2)
        yield url, check
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def not_ready(url: str) -> bool:
    try:
        return problem(url) is not None
    except ConnectionRefusedError:
        return True


def completion(url: str, prompt: str, max_tokens: int) -> str:
    body = {"model": "any", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
    answer = httpx.post(f"{url}/v1/completions", json=body, timeout=300, trust_env=False)
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["choices"][0]["text"]
    return text


@pytest.fixture(scope="module")
def bench(theirs: Callable[[str], Workbench]) -> Workbench:
    return theirs("trtllm-pytorch")


@pytest.mark.timeout(2400)
def test_greedy_text_is_that_of_the_torch_target_and_every_step_is_checked(
    bench: Workbench, ours: Workbench, built: Callable[..., Any], tmp_path: Path, record_property: Record
) -> None:
    engine = built("trtllm-pytorch", "fp8", "bf16")
    torch_folder = Path(built("torch", "fp8", "bf16")["folder"])
    expected = ours.prompts(torch_folder)
    tokenizer = load_tokenizer(torch_folder / "checkpoint")
    with served(bench, engine, tmp_path, "tags") as (url, check):
        compared = 0
        for name, prompt in PROMPTS.items():
            sure = sure_tokens(expected, name)
            compared += len(sure)
            assert completion(url, prompt, 32).lstrip().startswith(tokenizer.decode(sure).strip()), name
        assert compared > 0
        ready = httpx.get(f"{check}/ready", trust_env=False).json()
        metrics = httpx.get(f"{check}/metrics", trust_env=False).text
    assert ready["ready"]
    counted = {name: float(value) for name, value in re.findall(r"^(roundhouse_\w+)\{[^}]*\} (\S+)$", metrics, re.MULTILINE)}
    assert counted["roundhouse_guard_alive"] == 1
    assert counted["roundhouse_tag_mismatches_total"] == 0
    assert counted["roundhouse_tag_checks_total"] >= counted["roundhouse_steps_total"] > 0
    record_property("checks", int(counted["roundhouse_tag_checks_total"]))
    assert not (ours.home / "logs" / "integrity-events.jsonl").exists()


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("guard", ["off", "tags"])
def test_how_fast_it_answers(
    bench: Workbench, built: Callable[..., Any], tmp_path: Path, record_property: Record, guard: str
) -> None:
    """Numbers for the support table; nothing is judged by them."""
    engine = built("trtllm-pytorch", "fp8", "bf16")
    with served(bench, engine, tmp_path, guard) as (url, _), ThreadPoolExecutor(_AT_ONCE) as clients:
        prompts = [f"{number}. {PROMPTS['counting']}" for number in range(2 * _AT_ONCE)]
        list(clients.map(lambda prompt: completion(url, prompt, _TOKENS), prompts[:_AT_ONCE]))  # warm
        began = time.monotonic()
        list(clients.map(lambda prompt: completion(url, prompt, _TOKENS), prompts[_AT_ONCE:]))
        seconds = time.monotonic() - began
    record_property(f"tokens/s, guard {guard}, {_AT_ONCE} at once", f"{_AT_ONCE * _TOKENS / seconds:.0f}")
