"""An executable that takes aiperf's place and does what a test wants."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["write_stand_in"]

_SCRIPT = """#!{python}
import json, os, shutil, sys, time
from pathlib import Path
if sys.argv[1:] == ["--version"]:
    print("0.13.0")
    sys.exit()
config = json.loads(Path(sys.argv[3]).read_text())["benchmark"]
out = Path(config["artifacts"]["dir"])
out.mkdir()
{body}
"""


def write_stand_in(path: Path, body: str) -> Path:
    """Write one.

    Args:
        path: of the executable.
        body: Python that knows ``config`` and ``out``, the folder that results belong into.
    """
    path.write_text(_SCRIPT.format(python=sys.executable, body=body), encoding="utf-8")
    path.chmod(0o755)
    return path
