"""Faults of the page pool, put into a running loop: what a bug in its books would do to one request."""

from __future__ import annotations

from collections.abc import Callable

from driving import request

from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.pool import Grant
from roundhouse.serve.engine.request import Output, Request

Fault = Callable[[EngineLoop, int], None]
"""Damages what the request ``victim`` holds in a column."""


def freed(loop: EngineLoop, column: int) -> None:
    loop.pool.release([_grant(loop, column)])


def freed_and_regranted(loop: EngineLoop, column: int) -> None:
    page = _grant(loop, column).page
    freed(loop, column)
    loop.pool._free.remove(page)
    loop.pool._free.appendleft(page)  # the newcomer gets it first


def granted_twice(loop: EngineLoop, column: int) -> None:
    loop.pool._free.appendleft(_grant(loop, column).page)


def stale_cell(loop: EngineLoop, column: int) -> None:
    """The table names a neighbour's page under the tag that the victim was issued for its own."""
    tag = _grant(loop, column).tag
    loop._live["victim"].answers[0].grants[column] = Grant(loop._live["a"].answers[0].grants[0].page, tag)


FAULTS: dict[str, Fault] = {each.__name__: each for each in (freed, freed_and_regranted, granted_twice, stale_cell)}


def three_requests(**sampling: object) -> list[Request]:
    """``a``, ``victim`` and ``b``: three pages of prompt each."""
    return [request(name, [start] * 20, max_tokens=25, **sampling) for name, start in (("a", 7), ("victim", 90), ("b", 200))]


def newcomer(**sampling: object) -> Request:
    """One more request, for whom pages are granted after the fault."""
    return request("newcomer", [300] * 20, max_tokens=10, **sampling)


def run_to_the_end(loop: EngineLoop) -> list[Output]:
    """Step until nothing is left, whatever the books say."""
    outputs: list[Output] = []
    for _ in range(1000):
        if not loop.has_work:
            return outputs
        outputs += loop.step()
    raise AssertionError("still at work after 1000 steps")


def serve_with_newcomer(loop: EngineLoop, damage: Callable[[], None]) -> dict[str, list[Output]]:
    """Serve the three, two steps later do the damage, then let the newcomer in; returns outputs by request."""
    for each in three_requests():
        loop.submit(each)
    outputs = loop.step() + loop.step()
    damage()
    loop.submit(newcomer())
    outputs += run_to_the_end(loop)
    return {name: [o for o in outputs if o.request_id == name] for name in ("a", "victim", "b", "newcomer")}


def _grant(loop: EngineLoop, column: int) -> Grant:
    return loop._live["victim"].answers[0].grants[column]
