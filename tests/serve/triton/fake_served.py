"""A real Triton server whose engine processes are stand-ins (see ``fake_engine.py``): all of the server, no model."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundhouse.serve.private_folder import within_plain_path
from roundhouse.serve.triton.locate import find_triton
from roundhouse.serve.triton.repository import ENGINE_KEY, OVERRIDES_KEY, PYTHON_KEY, write_model
from roundhouse.serve.triton.server import TritonServer

FAKE_ENGINE = Path(__file__).parent.parent / "process" / "fake_engine.py"


def fake_python(folder: Path) -> Path:
    """An interpreter that runs the stand-in engine whatever module it is asked for."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_ENGINE} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@contextmanager
def fake_server(folder: Path, cache: Path, models: list[str]) -> Iterator[TritonServer]:
    """Serve models of these names, with model control; one whose name ends in ``broken`` cannot load and is not loaded."""
    python = str(fake_python(folder))
    for name in models:
        write_model(folder / "models", name, {ENGINE_KEY: f"/engines/{name}", PYTHON_KEY: python, OVERRIDES_KEY: "{}"})
    good = [name for name in models if not name.endswith("broken")]
    scratch = folder / "scratch"
    scratch.mkdir()
    install = within_plain_path(find_triton(cache), folder)
    server = TritonServer(install, folder / "models", good, control=True, scratch=scratch)
    try:
        server.start()
        yield server
    finally:
        server.stop()
