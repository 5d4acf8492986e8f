"""A fresh Python that lacks some of what is installed here, as TensorRT-LLM's own may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["run_lean"]

_PROLOGUE = """
import sys
STARTED = frozenset(name.partition(".")[0] for name in sys.modules)
class Hiding:
    names = frozenset({hidden!r}) - STARTED
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hiding)
sys.path[:0] = {folders!r}
"""


def run_lean(
    code: str, *, hidden: Iterable[str], folders: Iterable[Path] = (), environment: Mapping[str, str] = os.environ
) -> str:
    """Run code in such a Python.

    Args:
        code: what runs; ``STARTED`` names what Python had imported before.
        hidden: modules, by their first name, that cannot be imported there, unless Python itself does when it starts.
        folders: where it finds modules first.
        environment: all of its variables.

    Returns:
        What it printed.

    Raises:
        AssertionError: it failed; with its last words.
    """
    prologue = _PROLOGUE.format(hidden=sorted(hidden), folders=[str(folder) for folder in folders])
    command = [sys.executable, "-c", prologue + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(environment))
    assert done.returncode == 0, done.stderr
    return done.stdout
