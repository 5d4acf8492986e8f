"""Every rank says that it has the check in place, or why not, before any rank goes on.

TensorRT-LLM reports only rank 0's failures. A rank that could not install the check would otherwise run unguarded, and nobody
would be told. Point to point, and rank 0 waits only so long: in a collective call, one rank that is missing leaves all others
hanging. The others wait for rank 0 as long as it takes, because its failure ends them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from roundhouse.errors import ServeError

from .protocols import Communicator

__all__ = ["agree"]

_FIRST_TAG = 7_301
"""Of the messages; far from the tags of TensorRT-LLM's executor."""
_POLL_S = 0.01


def agree(
    ranks: Communicator,
    stage: int,
    problem: str | None,
    *,
    wait_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Go on only when every rank has come here without a problem.

    Args:
        ranks: all of the engine's.
        stage: which of several handshakes this is, from 0.
        problem: of this rank.
        wait_s: how long rank 0 waits for the others, in seconds.
        clock: seconds that never go back.
        sleep: waits for some seconds.

    Raises:
        ServeError: in every rank that came here, with the problems of all, and naming those that did not come.
    """
    hello, verdict = _FIRST_TAG + 2 * stage, _FIRST_TAG + 2 * stage + 1
    if ranks.rank:
        sent = ranks.isend(problem, dest=0, tag=hello)
        while not ranks.iprobe(source=0, tag=verdict):
            sleep(_POLL_S)
        decided = ranks.recv(source=0, tag=verdict)
        sent.wait()
    else:
        told = {0: problem}
        deadline = clock() + wait_s
        while (missing := set(range(ranks.size)) - told.keys()) and clock() <= deadline:
            here = [rank for rank in sorted(missing) if ranks.iprobe(source=rank, tag=hello)]
            told |= {rank: ranks.recv(source=rank, tag=hello) for rank in here}
            if not here:
                sleep(_POLL_S)
        problems = [f"rank {rank}: {said}" for rank, said in sorted(told.items()) if said]
        problems += [f"rank {rank} has not come within {wait_s:g} s" for rank in sorted(missing)]
        decided = "; ".join(problems) or None
        for answer in [ranks.isend(decided, dest=rank, tag=verdict) for rank in told if rank]:
            answer.wait()
    if decided:
        raise ServeError(
            f"the page check is not in place in every rank: {decided}", hint="With guard: off nothing of it is loaded."
        )
