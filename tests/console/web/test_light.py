"""The web process is small, and stays so whatever is looked at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from sqlalchemy import URL

SUPPORT = Path(__file__).parents[1] / "support"
HEAVY = {"torch", "transformers", "modelopt", "numpy", "safetensors", "tritonclient", "pytriton", "tensorrt_llm", "zmq"}


def test_no_page_loads_what_only_workers_need(migrated: dict[str, URL], tmp_path: Path) -> None:
    file = tmp_path / "it.sqlite3"
    shutil.copy(str(migrated["sqlite"].database), file)
    command = [sys.executable, str(SUPPORT / "visit_everything.py"), str(file), str(tmp_path / "home")]
    paths = os.pathsep.join([*sys.path, str(SUPPORT)])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["answers"]) > 60
    assert {path: status for path, status in told["answers"].items() if status not in (200, 303, 403, 404, 409)} == {}
    assert list(told["answers"].values()).count(200) > 50
    assert told["answers"]["/plan?model=demo:smollm2"] == 200
    assert HEAVY & set(told["modules"]) == set()
