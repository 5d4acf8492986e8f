"""What a deployment decides before, and makes sure of after, a server runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from roundhouse.errors import UsageError
from roundhouse.serve.deployment import Deployment, Ports


@pytest.mark.parametrize("name", ["http", "grpc", "metrics", "openai"])
@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_what_is_no_port_names_its_option(name: str, port: int) -> None:
    with pytest.raises(UsageError, match=f"^--{name} {port}: a port is a number from 0 to 65535"):
        Ports(**{name: port})


def test_the_same_port_twice_names_both_options() -> None:
    with pytest.raises(UsageError, match=r"^--http and --openai are both 8000"):
        Ports(openai=8000)
    Ports(http=0, grpc=0, metrics=0, openai=0)
    Ports(http=1, grpc=2, metrics=3, openai=65535)


def test_no_host_is_refused() -> None:
    with pytest.raises(UsageError, match="--host is empty"):
        Ports(host="")


def test_closing_goes_on_whatever_fails(tmp_path: Path) -> None:
    nothing: Any = None
    deployment = Deployment([], nothing)
    stopped = []

    def fail(grace_s: float) -> None:
        stopped.append("front")
        raise RuntimeError("the front cannot stop")

    folder = tmp_path / "private"
    folder.mkdir()
    parts: Any = deployment
    parts._front = SimpleNamespace(stop=fail)
    parts._triton = SimpleNamespace(stop=lambda: stopped.append("triton"))
    parts._folder = folder
    with pytest.raises(RuntimeError, match="the front cannot stop"):
        deployment.close()
    deployment.close()  # a second time has nothing left to do
    assert stopped == ["front", "triton"]
    assert not folder.exists()


@pytest.mark.parametrize(("before", "ends"), [("SIG_DFL", True), ("SIG_IGN", False)])
def test_a_closed_terminal_stops_it_unless_nohup_says_otherwise(before: str, ends: bool) -> None:
    script = f"""
import os, signal
from roundhouse.serve.stop_signals import stop_signals
signal.signal(signal.SIGHUP, signal.{before})
with stop_signals() as stop:
    os.kill(os.getpid(), signal.SIGHUP)
    print(stop.is_set())
print(signal.getsignal(signal.SIGHUP) == signal.{before})
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == [str(ends), "True"]
