"""Run by TensorRT-LLM's own Python, by ``host_probe.py PACKAGE...``: imports each in turn, and tells its version on a line.

A script, not a module of this package: it imports nothing but the standard library and what it asks about.
"""

import json
import sys
from importlib import import_module

__all__ = ["main"]


def main(*packages: str) -> None:
    """Print each version as JSON, behind a word that no library prints; what was told stays told when a later one fails."""
    for name in packages:
        version = import_module(name).__version__
        sys.stdout.write(f"roundhouse-probe {json.dumps({name: version})}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: its other modules must not be taken for anyone's
    main(*sys.argv[1:])
