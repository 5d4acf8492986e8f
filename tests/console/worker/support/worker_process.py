"""A worker with settings that no command line has: `worker_process.py`, its settings as JSON on standard input."""

from __future__ import annotations

import json
import logging
import sys
from datetime import timedelta
from pathlib import Path

from roundhouse.build.home import Home
from roundhouse.console.worker.service import run_worker
from roundhouse.console.worker.settings import WorkerSettings
from roundhouse.serve.stop_signals import stop_signals

given = json.loads(sys.stdin.read())
settings = WorkerSettings(
    home=Home(Path(given.pop("home"))), lease=timedelta(seconds=given.pop("lease_s")), child=tuple(given.pop("child")), **given
)
logging.basicConfig(level=logging.INFO)
with stop_signals() as stop:
    run_worker(settings, stop)
