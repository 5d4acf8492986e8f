"""`roundhouse worker`."""

from __future__ import annotations

import logging
import os

from roundhouse.build.command_options import HomeOption, home_at
from roundhouse.build.extras import require_extra

from ..command_options import DATABASE_DESCRIPTOR, DATABASE_VARIABLE, DatabaseOption, ModelsOption
from ..inherited import take_over

__all__ = ["worker"]


def worker(database: DatabaseOption = None, home: HomeOption = None, models: ModelsOption = None) -> None:
    """Do the console's jobs on this machine until Ctrl-C: build, verify, remove, deploy and drill engines of its home."""
    require_extra("console")
    from roundhouse.build.home import Home
    from roundhouse.serve.stop_signals import stop_signals

    from ..database.database import database_url
    from .service import run_worker
    from .settings import WorkerSettings

    os.environ.pop(DATABASE_VARIABLE, None)  # it may hold a password, and what jobs start inherits the rest
    if handed := os.environ.pop(DATABASE_DESCRIPTOR, None):
        database = take_over(int(handed))
    place = Home(home_at(home).path.resolve())
    settings = WorkerSettings(
        home=place,
        database=database_url(database, place).render_as_string(hide_password=False),
        model_folders=tuple(folder.expanduser().resolve() for folder in models or ()),
    )
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("roundhouse.console.worker").setLevel(logging.INFO)
    with stop_signals() as stop:
        run_worker(settings, stop)
