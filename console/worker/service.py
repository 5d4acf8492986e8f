"""A worker from its start to its end: lanes that do jobs, and what is done again and again beside them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from ..database.schema import open_database
from ..deployments.watch import DeploymentWatch
from ..jobs import Worklist
from ..jobs.lanes import LANES
from ..jobs.liveness import HEARTBEAT
from .inventory import Inventory
from .lane import Lane, remove_leftovers
from .periodic import Faults, Periodic
from .records_inventory import RecordsInventory
from .registration import Registration
from .settings import WorkerSettings

__all__ = ["Watch", "run_worker"]

_log = logging.getLogger(__name__)
_INVENTORY_S = 60.0
_DEPLOYMENTS_S = 2.0
_RECORDS_S = 2.0
_END_WAIT_S = 5.0


class Watch(NamedTuple):
    """Something else that a worker looks at again and again."""

    what: str
    """In words, for the log."""
    look: Callable[[], object]
    every_s: float


def run_worker(settings: WorkerSettings, stop: Event, watches: Sequence[Watch] = ()) -> None:
    """Work until ``stop`` is set: then children are ended, and their jobs given back.

    Args:
        settings: what it runs with.
        stop: ends it.
        watches: what else is looked at; each in a thread of its own, and whatever it raises.

    Raises:
        SetupError: the database cannot be used as it is.
    """
    database = settings.open_database()
    try:
        open_database(database)
        remove_leftovers(settings)
        registration = Registration(settings, database)
        worker = registration.begin()
        _log.info(
            "worker %s on %s: home %s, targets %s", worker.id, worker.host, worker.home, ", ".join(worker.targets) or "none"
        )
        worklist, inventory = Worklist(database, lease=settings.lease), Inventory(settings.home, settings.host)
        records = RecordsInventory(database, settings.home, settings.host)
        deployments = DeploymentWatch(database, settings.home, settings.host)
        engines = Periodic("comparing engines with the database", lambda: inventory.reconcile(database), _INVENTORY_S)
        beside = [
            Periodic("the heartbeat", registration.renew, HEARTBEAT.total_seconds()),
            Periodic("looking for abandoned jobs", worklist.give_up_abandoned, settings.lease.total_seconds() / 6),
            engines,
            Periodic("looking at deployments", deployments.look, _DEPLOYMENTS_S),
            Periodic("looking at benchmarks and evaluations", records.look, _RECORDS_S),
            *(Periodic(watch.what, watch.look, watch.every_s) for watch in watches),
        ]
        lanes = [Lane(name, settings, worklist, worker, stop, engines.nudge) for name in LANES]
        for thread in (*beside, *lanes):
            thread.start()
        stop.wait()
        for lane in lanes:
            lane.join()
        for periodic in beside:
            periodic.stop(_END_WAIT_S)
        deployments.close()
        try:
            registration.end()
        except SQLAlchemyError as error:  # then it counts as gone when its heartbeat has been missed
            Faults("saying that the worker ends").add(error)
        _log.info("worker %s: ended", worker.id)
    finally:
        database.close()
