"""Run by TensorRT-LLM's own Python: imports it, and tells its versions on the last line.

A script, not a module of this package: it imports nothing but the standard library and what it asks about.
"""

import json
import sys
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Print the versions as JSON, behind a word that no library prints."""
    versions = {name: import_module(name).__version__ for name in ("tensorrt", "tensorrt_llm")}
    sys.stdout.write(f"roundhouse-probe {json.dumps(versions)}\n")


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: its other modules must not be taken for anyone's
    main()
