"""Several ranks: what one of them finds, all of them act on, and in the same step."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from executor_twins import Distributed, LlmRequest, ScheduledRequests, expected_answer
from guarding import Guarded, make_guarded

from roundhouse.errors import ServeError

PROMPTS = {1: [1, 2, 3, 4, 0, 1], 2: [4, 4, 1], 3: [1, 2, 3, 4, 0, 2, 2]}


def run(ranks: list[Guarded]) -> list[BaseException | None]:
    """Every rank in a thread of its own, to its end."""
    problems: list[BaseException | None] = [None] * len(ranks)

    def work(number: int) -> None:
        try:
            ranks[number].drain()
        except BaseException as error:
            problems[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def made(size: int, timeout_s: float = 30.0) -> list[Guarded]:
    ranks = [make_guarded(dist) for dist in Distributed.of(size, timeout_s=timeout_s)]
    for rank in ranks:
        rank.submit(*(LlmRequest(number, prompt, 8) for number, prompt in PROMPTS.items()))
    return ranks


def at_step(step: int, rank: Guarded, fault: Callable[[], None]) -> None:
    steps = iter(range(1000))

    def between(batch: ScheduledRequests) -> None:
        if next(steps) == step:
            fault()

    rank.executor.between = between


@pytest.mark.parametrize("faulty", [0, 1, 2])
def test_a_fault_of_one_rank_stops_the_request_in_all(faulty: int) -> None:
    ranks = made(3)

    def lose_a_tag() -> None:
        page = ranks[faulty].blocks.sequences[2][0].id
        ranks[faulty].manager.page_book.tracker.page_tags[page] = 0

    at_step(2, ranks[faulty], lose_a_tag)
    assert run(ranks) == [None, None, None]
    for rank in ranks:
        assert rank.executor.errors.keys() == {2}
        assert rank.executor.answers == {number: expected_answer(PROMPTS[number], 8) for number in (1, 3)}
        assert [event.event for event in rank.events] == ["2/3/0"]
        assert rank.manager.page_book.counts().quarantined == 2
        assert rank.executor.steps_run == ranks[0].executor.steps_run


def test_two_ranks_that_find_different_requests_stop_both(caplog: pytest.LogCaptureFixture) -> None:
    ranks = made(2)
    for number, rank in enumerate(ranks, start=1):

        def lose_a_tag(rank: Guarded = rank, number: int = number) -> None:
            rank.manager.page_book.tracker.page_tags[rank.blocks.sequences[number][0].id] = 0

        at_step(1, rank, lose_a_tag)
    assert run(ranks) == [None, None]
    for rank in ranks:
        assert rank.executor.errors.keys() == {1, 2}
        assert rank.executor.answers.keys() == {3}


def test_ranks_gather_once_in_a_step() -> None:
    ranks = made(2)
    assert run(ranks) == [None, None]
    assert [rank.executor.dist.gathered for rank in ranks] == [rank.check.state.checks for rank in ranks]


def test_one_rank_gathers_nothing() -> None:
    (rank,) = made(1)
    assert run([rank]) == [None]
    assert rank.executor.dist.gathered == 0


def test_ranks_that_run_different_batches_run_nothing() -> None:
    ranks = made(2, timeout_s=2.0)
    ranks[1].executor.active_requests.pop()

    def lose_a_tag() -> None:
        ranks[0].manager.page_book.tracker.page_tags[ranks[0].blocks.sequences[3][0].id] = 0

    at_step(0, ranks[0], lose_a_tag)
    problems = run(ranks)
    assert isinstance(problems[1], ServeError)
    assert "different batches" in str(problems[1])


def test_only_the_rank_that_writes_events_keeps_them() -> None:
    ranks = made(2)
    ranks[1].check._writes_events = False
    at_step(1, ranks[1], lambda: ranks[1].manager.page_book.tracker.page_tags.fill(0))
    assert run(ranks) == [None, None]
    assert len(ranks[0].events) == 3
    assert ranks[1].events == []
    assert [rank.check.state.mismatches for rank in ranks] == [3, 3]
