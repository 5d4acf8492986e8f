"""A measurement on the terminal."""

from __future__ import annotations

import io
import threading
from pathlib import Path

from rich.console import Console

from roundhouse.serve.measurement.terminal import MeasurementTerminal


def test_a_log_has_a_line_for_each_point_and_names_what_takes_long() -> None:
    out = io.StringIO()
    with MeasurementTerminal(Console(file=out), threading.Event()) as terminal:
        terminal.stage("start", "starting demo")
        terminal.began(Path("/home/benchmarks/1"))
        terminal.stage("measure", "demo: 8 at once, repeat 1")
        terminal.progress(0.5)
        terminal.say("demo, 8 at once, repeat 1: 12 tokens/s [as it is]")
    assert [line.strip() for line in out.getvalue().splitlines() if line.strip()] == [
        "… starting demo",
        "demo, 8 at once, repeat 1: 12 tokens/s [as it is]",
    ]
    assert terminal.folders == [Path("/home/benchmarks/1")]


def test_a_terminal_shows_what_is_measured_now() -> None:
    out = io.StringIO()
    with MeasurementTerminal(Console(file=out, force_terminal=True, width=100), threading.Event()) as terminal:
        terminal.stage("measure", "demo: 8 at once, repeat 1")
        terminal._progress.refresh()
    assert "demo: 8 at once, repeat 1" in out.getvalue()
