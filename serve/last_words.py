"""Why a process of ours could not go on: in one line that is known among all that it, its libraries and a launcher print."""

from __future__ import annotations

from roundhouse.errors import RoundhouseError

__all__ = ["LastWords", "failure_line"]

_MARK = "roundhouse: "


def failure_line(error: RoundhouseError) -> str:
    """What is wrong and what to do, as :class:`LastWords` knows it again. It ends with a newline."""
    return _MARK + " ".join(f"{error.message} {error.hint or ''}".split()) + "\n"


class LastWords:
    """Listens to all that a process prints. One thread tells it lines, any may ask."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._said: str | None = None

    def hear(self, line: str) -> None:
        """Take a line."""
        self._last = line
        if self._said is None and line.startswith(_MARK):
            self._said = line.removeprefix(_MARK)

    @property
    def text(self) -> str | None:
        """The first of our own lines, for ranks that end with another say so later; else the last line, if there was one."""
        return self._said or self._last
