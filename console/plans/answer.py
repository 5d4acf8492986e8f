"""What a plan form is answered with: the plan, or what is wrong with the form, field by field."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.recipe import Recipe
from roundhouse.errors import RoundhouseError, UsageError

from ..benchmarks.calibrating import MeasuredHere
from ..models_allowed import AllowedModels
from .devices import Device, Devices
from .form import FIELDS, FormProblemsError, PlanForm
from .look_up import look_up_here

__all__ = ["PlanAnswer", "answer_to", "plan_here"]


@dataclass(frozen=True)
class PlanAnswer:
    """A form, and what it means."""

    form: PlanForm
    device: Device | None = None
    recipe: Recipe | None = None
    """As it was given, with its open keys left open."""
    plan: Plan | None = None
    """None where the form asks for nothing yet, or has problems."""
    problems: dict[str, str] = field(default_factory=dict)
    """Field → why it needs another value."""
    hints: dict[str, str] = field(default_factory=dict)
    """Field → what to do about it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for yet."""
        return self.plan is None and not self.problems


def answer_to(
    form: PlanForm,
    devices: Devices,
    models: AllowedModels,
    usual_price: float | None = None,
    measured: MeasuredHere | None = None,
) -> PlanAnswer:
    """Plan what a form says. Whatever is typed, this answers.

    Args:
        form: what was typed.
        devices: what may be planned for.
        models: which may be read.
        usual_price: of a GPU hour, where the form says none.
        measured: tells what was measured of a plan's engine.
    """
    problems, hints, device = dict[str, str](), dict[str, str](), None
    if not form.values.keys() - {"device"}:
        return PlanAnswer(form)
    try:
        device = devices.called(form.values.get("device"))
    except UsageError as error:
        problems["device"], hints["device"] = error.message, error.hint or ""
    request_tokens = _number(form, "request_tokens", problems)
    price = _price(form, problems, usual_price)
    try:
        recipe = form.recipe()
    except FormProblemsError as error:
        problems |= error.problems
    if problems or device is None:
        ordered = {name: problems[name] for name in FIELDS if name in problems}
        return PlanAnswer(form, device, problems=ordered, hints=hints)
    try:
        plan = plan_here(recipe, device, models, request_tokens=request_tokens, price_per_gpu_hour=price, measured=measured)
    except RoundhouseError as error:
        name = _field_of(error, recipe)
        return PlanAnswer(form, device, problems={name: error.message}, hints={name: error.hint or ""})
    return PlanAnswer(form, device, recipe, plan)


def plan_here(
    recipe: Recipe,
    device: Device,
    models: AllowedModels,
    *,
    request_tokens: int | None = None,
    price_per_gpu_hour: float | None = None,
    measured: MeasuredHere | None = None,
) -> Plan:
    """Plan a recipe that came over the network, from what is on this machine and what was measured.

    Raises:
        UsageError: it names files that may not be read, requests longer than the model's, or a price that is none.
        ModelError: the model cannot be read here.
        SetupError: the demo model is not installed.
    """
    models.require_recipe(recipe)
    shape, inventory = look_up_here(recipe.model)
    longest = recipe.max_seq_len or shape.max_positions
    if request_tokens is not None and request_tokens > longest:
        raise _RequestTokensError(f"requests are at most {longest:,} tokens long here")
    make = partial(
        make_plan,
        recipe,
        shape,
        inventory,
        device.hardware,
        request_tokens=request_tokens,
        price_per_gpu_hour=price_per_gpu_hour,
    )
    plan = make()
    # What was measured is looked up by what the plan decided; only where there is something it is planned once more.
    if measured is not None and (rows := measured(plan)):
        plan = make(measured=rows)
    prices = [row.price_per_million_tokens for row in plan.decode]
    if not all(math.isfinite(each) for each in prices if each is not None):
        raise _PriceError("no price follows from so much")
    return plan


class _RequestTokensError(UsageError):
    pass


class _PriceError(UsageError):
    pass


def _field_of(error: RoundhouseError, recipe: Recipe) -> str:
    """Which field an error is about; most are about the model's files."""
    if isinstance(error, _RequestTokensError):
        return "request_tokens"
    if isinstance(error, _PriceError):
        return "price"
    text = recipe.calibration.text
    return "calibration.text" if text is not None and str(text) in error.message and recipe.model != str(text) else "model"


def _number(form: PlanForm, name: str, problems: dict[str, str]) -> int | None:
    text = form.values.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19 and int(text)):
        problems[name] = "a whole number above 0 is needed"
        return None
    return int(text)


def _price(form: PlanForm, problems: dict[str, str], usual: float | None) -> float | None:
    text = form.values.get("price")
    if text is None:
        return usual
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not math.isfinite(price) or price < 0:
        problems["price"] = "what one GPU costs for an hour, such as 2.50"
        return None
    return price
