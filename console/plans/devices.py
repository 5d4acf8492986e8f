"""What a plan can be made for: the workers' machines, this one, and the GPUs of the table."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.hardware import Hardware, this_machine
from roundhouse.build.planner.gpus import gpu_names, hardware_called, local_gpu
from roundhouse.errors import UsageError

from ..database.base import utc_now
from ..jobs.liveness import is_alive
from ..models import Worker

__all__ = ["Device", "DeviceGroup", "Devices", "devices"]

DeviceGroup = Literal["Workers", "This machine", "GPUs of the table"]
_WORKER = "worker:"
_KEPT_S = 60
"""Seconds that an answer of ``nvidia-smi`` is kept: it takes a second, and a plan is asked for at every key."""


class Device(BaseModel):
    """Hardware that a plan can be made for, and what it is called in addresses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    label: str
    group: DeviceGroup
    hardware: Hardware


class Devices:
    """Everything that a plan can be made for, the likeliest first."""

    def __init__(self, known: tuple[Device, ...]) -> None:
        self.known = known

    @property
    def usual(self) -> Device:
        """The device when nobody names one."""
        return self.known[0]

    @property
    def groups(self) -> dict[DeviceGroup, tuple[Device, ...]]:
        """All of them by where they are."""
        groups = dict.fromkeys(device.group for device in self.known)
        return {group: tuple(device for device in self.known if device.group == group) for group in groups}

    def called(self, key: str | None) -> Device:
        """The device with this key; a GPU of the table by any part of its name that no other has.

        Raises:
            UsageError: there is none.
        """
        if not key:
            return self.usual
        found = next((device for device in self.known if device.key == key), None)
        if found is not None:
            return found
        if key.startswith(_WORKER):
            raise UsageError(f"no worker of host {key.removeprefix(_WORKER)} is alive", hint="Choose another device.")
        hardware = hardware_called(key[:80])
        return Device(key=hardware.name, label=hardware.name, group="GPUs of the table", hardware=hardware)


def devices(session: Session) -> Devices:
    """What a plan can be made for now, in one statement."""
    known: list[Device] = []
    alive = select(Worker.host, Worker.hardware).where(is_alive(utc_now())).order_by(Worker.host, Worker.started_at.desc())
    for host, told in session.execute(alive):
        if any(device.key == f"{_WORKER}{host}" for device in known):
            continue
        try:
            hardware = Hardware.model_validate(told)
        except ValidationError:  # a worker of another version
            continue
        known.append(Device(key=f"{_WORKER}{host}", label=f"{host}: {hardware.name}", group="Workers", hardware=hardware))
    here = this_machine()
    known.append(Device(key="cpu", label=here.name, group="This machine", hardware=here))
    if (gpu := _local_gpu(int(time.monotonic() // _KEPT_S))) is not None:
        known.append(Device(key="local", label=gpu.name, group="This machine", hardware=gpu))
    table = (Device(key=name, label=name, group="GPUs of the table", hardware=_of_table(name)) for name in gpu_names())
    return Devices((*known, *table))


@lru_cache(maxsize=1)
def _local_gpu(_: int) -> Hardware | None:
    return local_gpu()


@lru_cache
def _of_table(name: str) -> Hardware:
    return hardware_called(name)
