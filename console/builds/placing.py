"""Which workers could build a recipe, and what each of them makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.build.hardware import Hardware, this_machine
from roundhouse.build.planner.plan import Plan, require_legal
from roundhouse.build.recipe import Recipe

from ..benchmarks.calibrating import MeasuredHere, measured_here
from ..database.base import utc_now
from ..jobs.liveness import is_alive
from ..models import Worker
from ..models_allowed import AllowedModels
from ..plans.answer import plan_here
from ..plans.devices import Device

__all__ = ["Candidate", "Placing", "place"]

_MEMORY = "memory"


@dataclass(frozen=True)
class Candidate:
    """A host with a worker that takes the recipe's target."""

    host: str
    hardware: Hardware
    plan: Plan


@dataclass(frozen=True)
class Placing:
    """A recipe, and who could build it."""

    candidates: tuple[Candidate, ...]
    plan: Plan
    """For the first host that may build it; where none is alive, for this machine."""

    @property
    def able(self) -> tuple[Candidate, ...]:
        """The hosts on which the plan is legal."""
        return tuple(each for each in self.candidates if each.plan.legal)

    @property
    def planned_on(self) -> str | None:
        """The host that the plan is for; None where no worker is alive, and it is for this machine."""
        return next((each.host for each in self.candidates if each.plan is self.plan), None)

    @property
    def host(self) -> str | None:
        """The host that gets the job: the first that may build it, where not all with the target may; None: whoever is free.

        It is chosen once. When it goes away the job waits for it, though another host may be able.
        """
        return None if len(self.able) in (0, len(self.candidates)) else self.able[0].host

    @property
    def refusal(self) -> Plan | None:
        """The plan that refuses it everywhere, or None when it may be queued.

        Where no worker is alive nobody knows how much memory there will be: too little of it here refuses nothing.
        """
        if self.candidates:
            return None if self.able else self.plan
        left = [problem for problem in self.plan.problems if problem.code != _MEMORY]
        return self.plan if left else None

    def require(self) -> None:
        """See that it may be queued.

        Raises:
            PlanRefusedError: with every reason.
        """
        if self.refusal is not None:
            require_legal(self.refusal)


def place(session: Session, recipe: Recipe, models: AllowedModels) -> Placing:
    """Plan a recipe for every host with a live worker that takes its target, in one statement.

    Raises:
        UsageError: it names files that may not be read.
        ModelError: its model cannot be read here.
        SetupError: the demo model is not installed.
    """
    device = Worker.hardware if recipe.target == "torch" else Worker.gpu
    alive = select(Worker.host, device, Worker.targets).where(is_alive(utc_now())).order_by(Worker.host, Worker.id)
    hardware: dict[str, Hardware] = {}
    for host, told, targets in session.execute(alive):
        if recipe.target in targets and host not in hardware:
            try:
                hardware[host] = Hardware.model_validate(told)
            except ValidationError:  # a worker of another version
                continue
    measured = measured_here(session)
    candidates = tuple(Candidate(host, each, _plan(recipe, each, models, measured)) for host, each in hardware.items())
    first = next((each for each in candidates if each.plan.legal), candidates[0] if candidates else None)
    return Placing(candidates, first.plan if first else _plan(recipe, this_machine(), models, measured))


def _plan(recipe: Recipe, hardware: Hardware, models: AllowedModels, measured: MeasuredHere) -> Plan:
    device = Device(key="", label=hardware.name, group="Workers", hardware=hardware)
    return plan_here(recipe, device, models, measured=measured)
