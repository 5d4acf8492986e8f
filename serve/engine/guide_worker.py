"""A thread for work that may take too long: it is left behind, and the others' work goes on in a new one.

Native code cannot be interrupted. What a request asks of it is therefore done outside the engine's thread, and given up
when it has taken its share of processor time; how busy the machine is does not matter. A thread that is left behind ends
with its work, and until then only gets the time that nobody else wants.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["Job", "Worker"]

T = TypeVar("T")

_LOOK_S = 0.01
_LAST = 19
"""The niceness of what nobody waits for any more."""


class Job(Generic[T]):
    """Something to be done, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._values: list[T] = []
        self._error: Exception | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended or was given up."""
        return self._over.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, for so long at most; returns :attr:`done`."""
        return self._over.wait(timeout_s)

    def result(self) -> T:
        """What the work returned; or raises what it raised, or the error it was given up with. Only once :attr:`done`."""
        if self._error is not None:
            raise self._error.with_traceback(None)  # it may be asked for many times, and would remember each
        return self._values[0]

    def run(self) -> None:
        """Do the work. Only for the worker."""
        try:
            value = self._work()
        except BaseException as error:  # a panic of native code is no Exception, and must not end the thread either
            self.give_up(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        with self._lock:
            if not self.done:
                self._values = [value]
                self._over.set()

    def give_up(self, error: Exception) -> None:
        """End with an error, unless it has ended; what still comes of the work is dropped."""
        with self._lock:
            if not self.done:
                self._error = error
                self._over.set()


class Worker:
    """Does jobs in order, one at a time.

    Args:
        name: of its threads.
        most_cpu_s: seconds of processor time that a job may take.
        most_left_behind: when so many threads are left behind, jobs wait until one of them has ended.
    """

    def __init__(self, name: str, *, most_cpu_s: float, most_left_behind: int) -> None:
        self._most_cpu_s = most_cpu_s
        self._most_left_behind = most_left_behind
        self._name = name
        self._jobs: SimpleQueue[Job[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._seat: _Seat | None = None
        self._left_behind = 0

    @property
    def left_behind(self) -> int:
        """Threads that are still busy with jobs that were given up."""
        return self._left_behind

    def submit(self, work: Callable[[], T]) -> Job[T]:
        """Put work at the end of the line."""
        job = Job(work)
        with self._lock:
            self._take_seat()
        self._jobs.put(job)
        return job

    def finish(self, job: Job[T]) -> T:
        """Wait for a job and for those before it, giving up each that takes too long.

        Raises:
            TimeoutError: this one did.
            Exception: what its work raised.
        """
        while not job.wait(_LOOK_S):
            self.look()
        return job.result()

    def look(self) -> None:
        """Give up the running job if it has taken too long. To be called now and then while somebody waits for one."""
        with self._lock:
            seat = self._seat
            if seat is None or seat.job is None or seat.cpu_s() <= self._most_cpu_s:
                return
            seat.job.give_up(TimeoutError(f"more than {self._most_cpu_s:g} s of processor time"))
            os.setpriority(os.PRIO_PROCESS, seat.thread.native_id or 0, _LAST)
            self._left_behind += 1
            self._seat = None
            self._take_seat()

    def _take_seat(self) -> None:
        """See that a thread takes jobs."""
        if self._seat is None and self._left_behind < self._most_left_behind:
            self._seat = seat = _Seat()
            seat.thread = threading.Thread(target=self._work, args=(seat,), name=self._name, daemon=True)
            seat.thread.start()

    def _work(self, seat: _Seat) -> None:
        while True:
            job = self._jobs.get()
            with self._lock:
                seat.job, seat.began = job, time.thread_time()
            job.run()
            del job  # or what it returned would stay in memory until the next one
            with self._lock:
                seat.job = None
                if self._seat is not seat:
                    self._left_behind -= 1
                    self._take_seat()
                    return


class _Seat:
    """A thread, and what it is doing."""

    def __init__(self) -> None:
        self.thread: threading.Thread
        self.job: Job[Any] | None = None
        self.began = 0.0

    def cpu_s(self) -> float:
        """Seconds of processor time since the job began."""
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident or 0)) - self.began
