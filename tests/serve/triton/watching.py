"""Looking at a deployment from outside: its metrics, its processes, what it leaves behind."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

TIMEOUT_S = 60


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"within {TIMEOUT_S} s: {what}"
        time.sleep(0.02)


def metric(url: str, name: str) -> int:
    """The value of one of our metrics."""
    lines = httpx.get(url, trust_env=False).text.splitlines()
    return int(float(next(line.rsplit(" ", 1)[1] for line in lines if line.startswith(f"{name}{{"))))


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def engine_process(pid: int) -> psutil.Process | None:
    """The engine process somewhere below ``pid``."""
    for process in descendants(pid):
        try:
            if "roundhouse.serve.process.main" in process.cmdline():
                return process
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return None


@contextmanager
def held_still(process: psutil.Process) -> Iterator[None]:
    """Inside, a process does nothing; what it is sent waits for it."""
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def no_room_for_files() -> Iterator[None]:
    """No file can be written inside, as on a full disk: the kernel says "File too large" instead of "No space left"."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def shared_memory(pid: int) -> list[str]:
    """Regions of shared memory that carry this process's id."""
    return [path.name for path in Path("/dev/shm").glob(f"roundhouse_{pid}_*")]


def leftovers(pid: int) -> list[str]:
    """Shared memory and folders that carry this process's id."""
    folders = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [str(path) for folder in folders for path in folder.glob(f"roundhouse_{pid}_*")]
