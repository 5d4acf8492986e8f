"""States as pages show them: a colour, an icon and a word, always all three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CHIPS", "Chip", "Tone", "chip"]

Tone = Literal["good", "live", "quiet", "warn", "bad", "odd"]
"""``live``: it moves; ``quiet``: nothing to see; ``odd``: set aside."""


@dataclass(frozen=True)
class Chip:
    """How a state looks."""

    tone: Tone
    icon: str
    """In ``static/icons.svg``."""
    moves: bool = False


CHIPS: dict[str, Chip] = {
    "running": Chip("live", "running", moves=True),
    "starting": Chip("live", "running", moves=True),
    "restarting": Chip("warn", "restart", moves=True),
    "stopping": Chip("quiet", "running", moves=True),
    "verifying": Chip("live", "running", moves=True),
    "removing": Chip("warn", "running", moves=True),
    "ready": Chip("good", "ready"),
    "succeeded": Chip("good", "check"),
    "finished": Chip("good", "check"),
    "present": Chip("good", "check"),
    "passed": Chip("good", "shield-check"),
    "active": Chip("good", "check"),
    "alive": Chip("good", "ready"),
    "done": Chip("good", "check"),
    "free": Chip("quiet", "idle"),
    "idle": Chip("quiet", "idle"),
    "queued": Chip("quiet", "queued"),
    "waiting": Chip("quiet", "queued"),
    "stopped": Chip("quiet", "stopped"),
    "ended": Chip("quiet", "stopped"),
    "cancelled": Chip("quiet", "cancelled"),
    "not measured": Chip("quiet", "minus"),
    "expired": Chip("quiet", "queued"),
    "revoked": Chip("quiet", "cancelled"),
    "disabled": Chip("quiet", "cancelled"),
    "interrupted": Chip("warn", "interrupted"),
    "unready": Chip("warn", "warning"),
    "silent": Chip("warn", "dead"),
    "short": Chip("warn", "warning"),
    "refused": Chip("warn", "refused"),
    "failed": Chip("bad", "failed"),
    "dead": Chip("bad", "dead"),
    "gone": Chip("bad", "dead"),
    "damaged": Chip("bad", "damaged"),
    "quarantined": Chip("odd", "quarantine"),
}
"""By the word of the state."""


def chip(state: str) -> Chip:
    """How a state looks; a word that nobody gave a look is quiet."""
    return CHIPS.get(state, Chip("quiet", "idle"))
