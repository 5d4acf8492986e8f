"""Who is to blame: every row that is wrong, every alarm and every token of an episode is put down to a fault, or to none."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.integrity import IntegrityEvent
from ..engine.request import Chunk, Output
from ..engine.sequence import Sequence
from .faults import Fault
from .truth import Verdict

__all__ = ["Accounts"]

Who = tuple[str, int]
"""A request's id, and which of its answers."""


class Accounts:
    """The accounts of one episode."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.false_alarms = 0
        """Rows stopped although nothing was wrong with them."""
        self.unexplained = 0
        """Rows that were wrong by no fault that was put in."""
        self._blamed: dict[Who, Fault | None] = {}
        """Rows of this step that are not as they should be."""
        self._tainted: dict[Who, Fault] = {}
        """Who ran on a page that was not its own, or not as it was written."""

    def begin_step(self) -> None:
        """Another step."""
        self._blamed.clear()

    def look(self, sequence: Sequence, verdict: Verdict, step: int) -> None:
        """A row as the guard is about to see it."""
        if not any(verdict):
            return
        fault = self._culprit(sequence)
        self._blamed[_who(sequence)] = fault
        if fault is None:
            self.unexplained += 1
        elif fault.effective is None:
            fault.effective = step

    def ran(self, wrong: Iterable[Sequence]) -> None:
        """These rows ran although they are wrong."""
        for sequence in wrong:
            fault = self._blamed[_who(sequence)]
            if fault is not None:
                fault.ran += 1
                self._tainted[_who(sequence)] = fault

    def answered_wrongly(self, sequence: Sequence) -> None:
        """A row read something wrong, whatever was thought of it before."""
        if _who(sequence) in self._tainted:
            return
        fault = self._consequence()
        if fault is None:
            self.unexplained += 1
        else:
            self._tainted[_who(sequence)] = fault

    def alarm(self, event: IntegrityEvent) -> None:
        """A row was stopped."""
        who = (event.request_id, event.answer)
        if who not in self._blamed:
            self.false_alarms += 1
            return
        fault = self._blamed[who]
        if fault is not None and fault.found is None:
            fault.found = event.step

    def came_out(self, outputs: Iterable[Output]) -> None:
        """Tokens left the engine."""
        for output in outputs:
            if isinstance(output, Chunk):
                fault = self._tainted.get((output.request_id, output.index))
                if fault is not None:
                    fault.leaked += len(output.token_ids)

    def _culprit(self, sequence: Sequence) -> Fault | None:
        """The latest fault that can be at work here, one that is not found yet before others."""
        tainted = self._tainted.get(_who(sequence))
        if tainted is not None:
            return tainted
        suspects = [fault for fault in self.faults if fault.hits(sequence)]
        at_large = [fault for fault in suspects if fault.found is None]
        return (at_large or suspects)[-1] if suspects else self._consequence()

    def _consequence(self) -> Fault | None:
        """Whoever runs with a wrong table may write into pages of people whom the fault itself does not hit."""
        return next((fault for fault in reversed(self.faults) if fault.ran), None)


def _who(sequence: Sequence) -> Who:
    return sequence.request_id, sequence.index
