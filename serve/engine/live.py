"""What the loop keeps of a request while any of its answers is unfinished."""

from __future__ import annotations

from dataclasses import dataclass, field

from .sequence import Sequence

__all__ = ["LiveRequest"]


@dataclass(eq=False)
class LiveRequest:
    """A request and its unfinished answers. Times are in seconds of the loop's clock."""

    request_id: str
    arrived: float
    deadline: float | None
    answers: list[Sequence]
    last_token: dict[int, float] = field(default_factory=dict)
    """When each answer got its latest token, by index."""

    def seconds_waited(self, index: int, now: float) -> tuple[float, bool]:
        """Note a token of an answer; returns the seconds it took, and whether it is the answer's first."""
        before = self.last_token.get(index)
        self.last_token[index] = now
        return (now - self.arrived, True) if before is None else (now - before, False)
