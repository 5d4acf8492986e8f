"""When a deployment is started again, and when that is the end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from roundhouse.console.supervisor import keeping
from roundhouse.console.supervisor.keeping import Keeper
from roundhouse.errors import ServeError
from roundhouse.serve.addresses import Endpoints

AT = Endpoints(model="m", models=("m",), http="h", grpc="g", metrics="m", openai="o", chat=True)


class Clock:
    """Time that passes while somebody waits for it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stop(threading.Event):
    """Set by the test after so many waits; each wait takes its time at once."""

    def __init__(self, clock: Clock, most_waits: int = 1000) -> None:
        super().__init__()
        self.clock = clock
        self.waits: list[float] = []
        self.most_waits = most_waits

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        self.clock.now += timeout or 0.0
        if len(self.waits) >= self.most_waits:
            self.set()
        return self.is_set()


class Script:
    """A deployment that does what it is told: for each start, what goes wrong and after how many looks."""

    def __init__(self, *runs: tuple[str, int]) -> None:
        self.runs = list(runs)
        self.before: list[Endpoints | None] = []
        self.closed: list[float] = []
        self.fails_to_close = False
        self._looks = 0
        self._problem = ""

    def make(self, before: Endpoints | None) -> Script:
        self.before.append(before)
        self._problem, self._looks = self.runs.pop(0) if self.runs else ("", 0)
        return self

    @property
    def endpoints(self) -> Endpoints:
        return AT

    def start(self, stop: threading.Event) -> bool:
        if self._problem == "cannot start":
            raise ServeError("a port is taken", hint="Take another.")
        return not stop.is_set()

    def require_running(self) -> None:
        self._looks -= 1
        if self._problem and self._looks <= 0:
            raise ServeError(self._problem)

    def close(self, grace_s: float) -> None:
        self.closed.append(grace_s)
        if self.fails_to_close:
            raise ServeError("it does not unload")


def keep(script: Script, most_waits: int = 1000) -> tuple[bool, list[tuple[str, dict[str, Any]]], Stop]:
    clock = Clock()
    stop = Stop(clock, most_waits)
    told: list[tuple[str, dict[str, Any]]] = []
    keeper = Keeper(script.make, lambda word, **more: told.append((word, more)), lambda: 7.0, clock)
    return keeper.keep(stop), told, stop


def test_it_is_ended_when_somebody_says_so() -> None:
    script = Script(("", 0))
    ended_well, told, _ = keep(script, most_waits=3)
    assert ended_well
    assert [word for word, _ in told] == ["starting", "ready", "stopping", "stopped"]
    assert told[1][1]["endpoints"]["openai"] == "o"
    assert script.closed == [7.0]


def test_a_first_start_that_fails_is_the_end() -> None:
    script = Script(("cannot start", 0))
    ended_well, told, _ = keep(script)
    assert not ended_well
    assert told[-1][0] == "failed"
    assert (told[-1][1]["reason"], told[-1][1]["hint"]) == ("a port is taken", "Take another.")
    assert script.before == [None]


def test_what_was_ready_is_started_again_where_it_was_and_later_each_time() -> None:
    script = Script(("Triton ended", 1), ("cannot start", 0), ("Triton ended", 1), ("", 0))
    ended_well, told, stop = keep(script, most_waits=40)
    assert ended_well
    assert [word for word, _ in told] == [
        "starting", "ready", "restarting", "restarting", "ready", "restarting", "ready", "stopping", "stopped",
    ]  # fmt: skip
    assert script.before == [None, AT, AT, AT]
    assert [wait for wait in stop.waits if wait >= 1] == [1.0, 2.0, 4.0]
    assert told[-1][1]["restarts"] == 3
    assert told[2][1]["reason"] == "Triton ended"


def test_five_ends_within_ten_minutes_are_the_end() -> None:
    ended_well, told, _ = keep(Script(*[("Triton ended", 1)] * 9))
    assert not ended_well
    assert [word for word, _ in told].count("ready") == 5
    assert "5 times within 10 minutes; the last time: Triton ended" in told[-1][1]["reason"]


def test_ends_that_are_far_apart_are_no_end() -> None:
    looks = int(keeping._WITHIN_S / 4 / keeping._LOOK_S) + 1
    ended_well, told, _ = keep(Script(*[("Triton ended", looks)] * 9), most_waits=looks * 10)
    assert ended_well
    assert [word for word, _ in told].count("ready") == 10


def test_somebody_may_say_so_while_it_waits() -> None:
    ended_well, told, _ = keep(Script(("Triton ended", 1)), most_waits=2)
    assert ended_well
    assert [word for word, _ in told] == ["starting", "ready", "restarting", "stopped"]


def test_a_fault_of_ours_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()

    def fail(before: Endpoints | None) -> Script:
        raise KeyError("oh")

    script.make = fail  # type: ignore[method-assign]
    ended_well, told, _ = keep(script)
    assert not ended_well
    assert told[-1][1]["reason"] == "the supervisor failed: KeyError('oh')"
    assert "Traceback" in capsys.readouterr().err


def test_what_cannot_be_closed_is_said_and_does_not_start_it_again() -> None:
    script = Script(("", 0))
    script.fails_to_close = True
    ended_well, told, _ = keep(script, most_waits=2)
    assert ended_well
    assert told[-1][0] == "stopped"
    assert told[-1][1]["reason"] == "it does not unload"
