"""From the command line to a wish, and back: the command that evaluates again."""

from __future__ import annotations

import shlex

from pydantic import ValidationError

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.errors import UsageError

from ..disk import spelled_out
from ..measurement.engines import lasting_name
from ..options import OptionNames
from .subjects import base_called
from .wish import EvaluationWish

__all__ = ["command_of", "wish_of", "with_ids"]

_OPTIONS = OptionNames({"server": "--server-name", "gate_points": "--gate", "request_timeout_s": "--timeout"})
_TOLD = (
    "model",
    "against",
    "against_model",
    "api_key_variable",
    "against_api_key_variable",
    "server",
    "limit",
    "data",
    "gate_points",
    "seed",
    "request_timeout_s",
)
"""Fields that a command gives where they are not as usual."""
_OF_ENDPOINTS = ("model", "api_key_variable", "server")
_OF_BASES = ("against_model", "against_api_key_variable")


def wish_of(subject: str, *, tasks: str | None, **values: object) -> EvaluationWish:
    """A wish from what was typed.

    Args:
        subject: an engine, or a URL.
        tasks: names with commas between them; None for all shipped suites.
        values: other fields of the wish, and ``overrides`` as a mapping.

    Raises:
        UsageError: naming the option that does not fit, or that means nothing here.
    """
    names = [name for part in (tasks or "").split(",") if (name := part.strip())]
    who = {"url": subject} if "://" in subject else {"engine": subject}
    try:
        wish = EvaluationWish.model_validate({**who, "tasks": names, **values})
    except ValidationError as error:
        raise _OPTIONS.misfit(error, whole="the evaluation") from None
    _require_meaning(wish)
    return wish


def with_ids(home: Home, wish: EvaluationWish) -> EvaluationWish:
    """The same with ids instead of names of this home's engines and evaluations, and with whole paths.

    A name may be another engine's tomorrow, and a path another folder's elsewhere.

    Raises:
        UsageError: there is no such engine or evaluation, or a setting of engines is for none.
        EngineError: an engine is damaged.
    """
    changed: dict[str, str] = {}
    engines = wish.engine is not None
    if wish.engine is not None:
        changed["engine"] = lasting_name(home, EngineStore(home).find(wish.engine))
    if wish.against is not None and "://" not in wish.against:
        base = base_called(home, wish.against)
        engines = engines or isinstance(base, Engine)
        changed["against"] = lasting_name(home, base) if isinstance(base, Engine) else base.name
    if not engines:
        _refuse_overrides(wish)
    if wish.data is not None:
        changed["data"] = _whole(wish.data)
    return wish.model_copy(update=changed)


def command_of(wish: EvaluationWish) -> str:
    """The command that evaluates again; a home is named by its variable."""
    words = ["roundhouse", "evaluate", wish.url or wish.engine or ""]
    if wish.tasks:
        words += ["--tasks", ",".join(wish.tasks)]
    for name in _TOLD:
        value, usual = getattr(wish, name), EvaluationWish.model_fields[name].default
        if value is not None and value != usual:
            words += _OPTIONS.typed(name, value)
    for name, value in wish.overrides.model_dump(exclude_none=True).items():
        words += _OPTIONS.typed(name, value)
    return shlex.join(words)


def _require_meaning(wish: EvaluationWish) -> None:
    """Refuse what would be ignored."""
    against_url = "://" in (wish.against or "")
    if wish.engine is not None:
        for name in _OF_ENDPOINTS:
            if getattr(wish, name) is not None:
                hint = (
                    f"For a base that is a URL there is --against-{_OPTIONS.of(name)[2:]}."
                    if f"against_{name}" in _OF_BASES
                    else None
                )
                raise UsageError(f"{_OPTIONS.of(name)} is for endpoints", hint=hint or "Give the URL of one.")
    for name in _OF_BASES:
        if getattr(wish, name) is not None and not against_url:
            raise UsageError(
                f"{_OPTIONS.of(name)} is for a base that is an endpoint", hint="Give the URL of one: --against URL."
            )
    if wish.url is not None and (wish.against is None or against_url):
        _refuse_overrides(wish)


def _refuse_overrides(wish: EvaluationWish) -> None:
    for name in wish.overrides.model_dump(exclude_none=True):
        raise UsageError(f"{_OPTIONS.of(name)} is for engines that are loaded here; {wish.url} runs as it is")


def _whole(path: str) -> str:
    return str(spelled_out(path).resolve())
