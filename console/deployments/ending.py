"""What is left of a deployment that has ended: its last log lines go into the database, samples and folder go away."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import delete, select

from roundhouse.build.home import Home
from roundhouse.serve.leftovers import remove_leftovers

from ..database.database import Database
from ..models import LIVE_STATES, Deployment, DeploymentSample
from ..supervisor.folder import DeploymentFolder, deployments_of
from ..supervisor.log import LogReader
from .log_rows import KEPT_LINES, add_lines, last_numbers

__all__ = ["clear", "folders_alone"]


@contextmanager
def folders_alone(home: Home) -> Iterator[None]:
    """While inside, nobody else makes or removes folders of this home's deployments."""
    place = home.path / "deployments"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(place / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def clear(database: Database, home: Home, folder: DeploymentFolder) -> bool:
    """Take the rest of the log and remove the folder, if the deployment has ended by the database and on this machine.

    Returns:
        Whether it was removed.
    """
    with folders_alone(home):
        if folder.is_watched or folder.path not in {each.path for each in deployments_of(home)}:
            return False
        id_ = folder.deployment_id
        with database.writing() as session:
            row = session.scalar(select(Deployment).where(Deployment.id == id_))
            if row is None or row.state in LIVE_STATES:
                return False
            session.execute(delete(DeploymentSample).where(DeploymentSample.deployment_id == id_))
            add_lines(session, id_, LogReader(folder.path).after(last_numbers(session, [id_]).get(id_, 0), most=KEPT_LINES))
        folder.remove()
    for place in (Path("/dev/shm"), Path(tempfile.gettempdir())):  # one that was killed could not do it itself
        remove_leftovers(place)
    return True
