"""The ranks' handshake, over a twin of mpi4py's communicator whose ranks are threads."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from roundhouse.errors import ServeError
from roundhouse.serve.trtllm_guard.handshake import agree


class Letters:
    """What was sent between ranks and not taken yet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.Lock()
        self.waiting: dict[tuple[int, int, int], list[Any]] = {}

    def rank(self, rank: int) -> Communicator:
        return Communicator(rank, self)


class Communicator:
    """One rank's side."""

    def __init__(self, rank: int, letters: Letters) -> None:
        self.rank, self.size = rank, letters.size
        self._letters = letters

    def isend(self, obj: object, dest: int, tag: int) -> Any:
        with self._letters.lock:
            self._letters.waiting.setdefault((self.rank, dest, tag), []).append(obj)
        return self

    def wait(self) -> None:
        """A small message is under way at once."""

    def iprobe(self, source: int, tag: int) -> bool:
        with self._letters.lock:
            return bool(self._letters.waiting.get((source, self.rank, tag)))

    def recv(self, *, source: int, tag: int) -> Any:
        with self._letters.lock:
            return self._letters.waiting[source, self.rank, tag].pop(0)


def play(problems: dict[int, str | None], size: int, wait_s: float = 30.0, stages: int = 1) -> dict[int, str | None]:
    """What each rank that comes is told."""
    letters = Letters(size)
    told: dict[int, str | None] = {}

    def come(rank: int) -> None:
        try:
            for stage in range(stages):
                agree(letters.rank(rank), stage, problems[rank], wait_s=wait_s)
            told[rank] = None
        except ServeError as error:
            told[rank] = error.message

    threads = [threading.Thread(target=come, args=(rank,), daemon=True) for rank in problems]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return told


def test_ranks_without_a_problem_go_on_together() -> None:
    assert play(dict.fromkeys(range(4)), 4, stages=3) == dict.fromkeys(range(4))


def test_one_rank_is_a_handshake_too() -> None:
    agree(Letters(1).rank(0), 0, None, wait_s=1.0)
    with pytest.raises(ServeError, match="rank 0: no library"):
        agree(Letters(1).rank(0), 1, "no library", wait_s=1.0)


def test_what_one_rank_lacks_all_are_told() -> None:
    told = play({0: None, 1: "TensorRT-LLM 1.3.0 is here", 2: None}, 3)
    assert set(told.values()) == {"the page check is not in place in every rank: rank 1: TensorRT-LLM 1.3.0 is here"}
    assert len(told) == 3


def test_every_problem_is_told() -> None:
    told = play({0: "this", 1: None, 2: "that"}, 3)
    assert told[1] is not None
    assert told[1].endswith("rank 0: this; rank 2: that")


def test_a_rank_that_does_not_come_is_named() -> None:
    told = play({0: None, 2: None}, 4, wait_s=0.05)
    assert told[0] is not None
    assert told[0].endswith("rank 1 has not come within 0.05 s; rank 3 has not come within 0.05 s")
    assert told[2] == told[0]


def test_rank_0_waits_for_those_that_load_longer() -> None:
    letters = Letters(2)
    late = threading.Thread(target=lambda: (time.sleep(0.1), agree(letters.rank(1), 0, None, wait_s=0.01)))
    late.start()
    agree(letters.rank(0), 0, None, wait_s=30.0)
    late.join()
    assert letters.waiting == {(0, 1, 7302): [], (1, 0, 7301): []}
