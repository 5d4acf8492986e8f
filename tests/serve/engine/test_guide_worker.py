"""Work that may take too long: it is given up, nothing waits behind it, and its thread ends with it."""

from __future__ import annotations

import threading

import pytest

from roundhouse.serve.engine.guide_worker import Worker


class Busy:
    """Work that keeps a processor busy until it is told to stop."""

    def __init__(self) -> None:
        self.began, self.enough = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        while not self.enough.is_set():
            sum(range(1000))
        return "too late"


def threads() -> int:
    return sum(thread.name == "busy-test" for thread in threading.enumerate())


def worker(most_left_behind: int = 9) -> Worker:
    return Worker("busy-test", most_cpu_s=0.02, most_left_behind=most_left_behind)


def wait_until_alone(one: Worker) -> None:
    while one.left_behind:
        threading.Event().wait(0.005)


def test_jobs_are_done_in_order_and_return_their_result() -> None:
    one, done = worker(), []
    jobs = [one.submit(lambda number=number: done.append(number) or number) for number in range(5)]
    assert [one.finish(job) for job in jobs] == [0, 1, 2, 3, 4] == done


def test_whoever_asked_gets_the_error() -> None:
    one = worker()

    def fail() -> None:
        raise ValueError("no such grammar")

    with pytest.raises(ValueError, match="no such grammar"):
        one.finish(one.submit(fail))
    assert one.finish(one.submit(lambda: "on")) == "on"


def test_a_panic_of_native_code_reaches_the_caller_as_an_error_and_ends_no_thread() -> None:
    class PanicError(BaseException):
        """As Rust's panics arrive in Python: no Exception."""

    one = worker()

    def panic() -> None:
        raise PanicError("index out of bounds")

    with pytest.raises(RuntimeError, match="index out of bounds"):
        one.finish(one.submit(panic))
    assert one.finish(one.submit(lambda: "on")) == "on"


def test_a_job_that_takes_too_long_is_given_up_and_the_next_one_is_done() -> None:
    one, busy = worker(), Busy()
    stuck, behind = one.submit(busy), one.submit(lambda: "done")
    assert one.finish(behind) == "done"
    assert one.left_behind == 1
    with pytest.raises(TimeoutError, match=r"0\.02 s of processor time"):
        one.finish(stuck)
    before = threads()
    busy.enough.set()
    wait_until_alone(one)
    with pytest.raises(TimeoutError):  # what came of it after all is dropped
        stuck.result()
    assert one.finish(one.submit(lambda: "on")) == "on"
    while threads() >= before:  # the thread ended with its work
        threading.Event().wait(0.005)


def test_time_spent_waiting_does_not_count() -> None:
    one, enough = worker(), threading.Event()
    waiting = one.submit(lambda: enough.wait(0.2))
    while not waiting.wait(0.01):
        one.look()
    assert waiting.result() is False
    assert one.left_behind == 0


def test_when_too_many_are_left_behind_jobs_wait_for_one_of_them() -> None:
    one, first, second = worker(most_left_behind=2), Busy(), Busy()
    jobs = [one.submit(first), one.submit(second), one.submit(lambda: "done")]
    for job in jobs[:2]:
        with pytest.raises(TimeoutError):
            one.finish(job)
    assert one.left_behind == 2
    one.look()
    assert not jobs[2].wait(0.05)
    first.enough.set()
    assert one.finish(jobs[2]) == "done"
    second.enough.set()
    wait_until_alone(one)
    assert one.finish(one.submit(lambda: "on")) == "on"
