"""What pages and the API show of drills. A report is read as the job left it: the drill itself is never imported here."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from roundhouse.serve.drill.kinds import KINDS

from ..models import JobState

__all__ = ["DrillDetail", "DrillKind", "DrillReportRow", "DrillRow", "DrillWish", "Faults", "ReportFailure"]

Faults = ("none", *KINDS)
"""Kinds of faults that can be put in; ``none``: engines without faults, in which nothing may be found."""
_MOST_STEPS, _MOST_SEED = 1_000_000, 2**31
_MOST_STEPS_WITH_ENGINE = 20_000
"""Of a whole drill: about an hour, of 2 to 4 ms a step, or 0.2 s with a small model. Builds of its home wait so long."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DrillWish(_Record):
    """A drill that somebody asks for. None leaves the choice to the drill."""

    engine_id: str | None = Field(default=None, max_length=64)
    """The engine whose model runs; None: no model, and far more steps in the same time."""
    seed: int | None = Field(default=None, ge=0, lt=_MOST_SEED)
    """Decides everything; None: a new one."""
    faults: tuple[str, ...] | None = Field(default=None, max_length=len(Faults))
    """Kinds of faults; None: every one."""
    guards: tuple[Literal["off", "tags", "tags+content"], ...] | None = Field(default=None, max_length=3)
    """Levels; None: ``tags`` and ``tags+content``."""
    steps: int | None = Field(default=None, ge=1, le=_MOST_STEPS)
    """Of each kind at each level, at least; None: 2,000, and 100 with an engine."""

    @field_validator("faults", "guards")
    @classmethod
    def _once_each(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if names is None else tuple(dict.fromkeys(names))

    @field_validator("steps")
    @classmethod
    def _ends_in_time(cls, steps: int | None, info: ValidationInfo) -> int | None:
        if steps is None or not {"engine_id", "faults", "guards"} <= info.data.keys():
            return steps
        cases = _cases(info.data["faults"], info.data["guards"])
        with_engine = info.data["engine_id"] is not None
        most = _MOST_STEPS_WITH_ENGINE if with_engine else _MOST_STEPS
        if steps * cases > most:
            raise ValueError(
                f"{steps:,} steps of each of {cases} cases (kinds at levels) are {steps * cases:,}, and a drill "
                f"{'with an engine ' if with_engine else ''}has {most:,} at most; choose fewer steps, faults or levels"
            )
        return steps

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.faults or ():
            if name not in Faults:
                raise ValueError(f"there is no fault {name!r}; there is {', '.join(Faults)}")
        if self.faults == () or self.guards == ():
            raise ValueError("choose one kind and one level at least, or leave them out to play all")
        return self


def _cases(faults: tuple[str, ...] | None, guards: tuple[str, ...] | None) -> int:
    """How many kinds at how many levels are played, as the drill itself would say."""
    played = faults or Faults
    # Where no level is chosen, contents are sampled, too, for those kinds to which that makes a difference.
    sampled = 0 if guards else sum(name in KINDS and KINDS[name].is_sampled for name in played)
    return len(played) * (len(guards) if guards else 2) + sampled


class DrillKind(BaseModel):
    """All faults of one kind at one level."""

    model_config = ConfigDict(frozen=True)

    fault: str | None
    """None: engines without faults."""
    guard: str
    guard_sample: float | None
    """Share of full pages whose content is compared before a step; None where contents are not compared."""
    probability: float
    """How likely a fault of this kind is stopped in time here, at least: 1 must be, 0 nobody claims."""
    injected: int
    effective: int
    """Somebody was about to run with it."""
    detected: int
    """Everybody whom it hit was stopped before running with it."""
    wrong_rows_run: int
    leaked_tokens: int
    false_alarms: int
    delay_steps: int
    unexplained: int
    errors: int
    steps: int
    grants: int
    passed: bool
    judged: bool
    """Whether it could have failed."""

    @property
    def what(self) -> str:
        """The fault in words."""
        if self.fault is None:
            return "no faults are put in: nothing may be found"
        return KINDS[self.fault].what if self.fault in KINDS else ""

    @property
    def level(self) -> str:
        """``tags+content, 2%``."""
        return self.guard if self.guard_sample in (None, 1) else f"{self.guard}, {self.guard_sample:.0%}"

    @property
    def verdict(self) -> str:
        """What to make of the row, in words."""
        if not self.passed:
            return "failed"
        if self.fault is not None and not self.effective:
            return "not tried: no fault hit anybody"
        if self.guard == "off":
            return "nobody looks at this level"
        if self.probability == 0:
            return "not seen by tags, as is known"
        if self.probability == 1:
            return "passed"
        share = self.detected / self.effective if self.effective else 0.0
        return f"{share:.1%} in time{'' if self.judged else ', too few to judge'}"


class ReportFailure(BaseModel):
    """An episode in which a level did not do what it must."""

    model_config = ConfigDict(frozen=True)

    fault: str | None
    guard: str
    guard_sample: float | None
    seed: int
    steps: int
    why: str

    def command(self, engine: str | None) -> str:
        """Plays exactly it again, at a command line."""
        sample = "" if self.guard_sample is None else f" --guard-sample {self.guard_sample}"
        which = f"--seed {self.seed} --steps {self.steps} --fault {self.fault or 'none'} --guard {self.guard}{sample}"
        return " ".join(part for part in ("roundhouse drill", engine, which) if part)


class DrillReportRow(BaseModel):
    """What came of a drill."""

    model_config = ConfigDict(frozen=True)

    seed: int
    engine: str | None
    steps: int
    grants: int
    faults: int
    preemptions: int
    cached_tokens: int
    passed: bool
    kinds: tuple[DrillKind, ...]
    failures: tuple[ReportFailure, ...]


class DrillRow(_Record):
    """A drill in a list."""

    id: int
    """Of its job."""
    state: JobState
    engine_id: str | None
    subject: str
    """The engine's name, or ``no model``."""
    requested_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    passed: bool | None
    """None where there is no report."""
    faults: int | None
    """That were put in."""
    seed: int | None


class DrillDetail(DrillRow):
    """A drill with its report."""

    host: str | None
    error: str | None
    hint: str | None
    wish: dict[str, Any]
    """As it was asked for."""
    report: DrillReportRow | None

    @property
    def command(self) -> str:
        """Plays the whole drill again, at a command line."""
        parts = ["roundhouse drill", self.engine_id or ""]
        seed = self.report.seed if self.report else self.seed
        parts += [
            f"--seed {seed}" if seed is not None else "",
            f"--steps {self.wish['steps']}" if self.wish.get("steps") else "",
        ]
        parts += [f"--fault {name}" for name in self.wish.get("faults") or ()]
        parts += [f"--guard {name}" for name in self.wish.get("guards") or ()]
        return " ".join(part for part in parts if part)

    @property
    def sentence(self) -> str | None:
        """What came of it, in a sentence; None where there is no report."""
        if self.report is None:
            return None
        report = self.report
        head = f"{report.faults:,} faults were put into {report.grants:,} granted pages over {report.steps:,} steps"
        if not report.passed:
            failed = len(report.failures)
            return f"{head}, and {failed} time{'s' if failed != 1 else ''} a level did not do what it must."
        must = [kind for kind in report.kinds if kind.fault is not None and kind.probability == 1]
        stopped = sum(kind.detected for kind in must)
        return (
            f"{head}. Every fault that a level must see was stopped in time ({stopped:,} of {stopped:,}), and nothing else was."
        )
