"""Finds what somebody calls by a name, by its id, or by the start of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from roundhouse.errors import UsageError

from ..benchmarks.records import BenchmarkRow
from ..deployments.listing import ListedDeployment
from ..deployments.records import DeploymentRow
from ..engines.records import EngineRow
from ..errors import NotFoundError
from ..evaluations.records import EvaluationRow
from ..paging import Paged
from .client import Client, Query

__all__ = ["find_benchmark", "find_deployment", "find_engine", "find_evaluation"]

_MOST = 200


class _Named(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def find_engine(client: Client, called: str) -> EngineRow:
    """An engine by its id, its name, or the start of its id; those that are gone count where no other fits.

    Raises:
        NotFoundError: none is called like that.
        UsageError: several are.
    """
    query: Query = {"text": called, "state": "any", "size": _MOST}
    found = client.get("/engines", Paged[EngineRow], query).items
    there = [engine for engine in found if engine.state != "gone"]
    return _only(there or found, called, "engine")


def find_deployment(client: Client, called: str) -> DeploymentRow:
    """A deployment by its id, its name, or the start of its id; those that have ended count where no other fits.

    Raises:
        NotFoundError: none is called like that.
        UsageError: several are.
    """
    query: Query = {"text": called, "state": "any", "size": _MOST}
    found = [each.deployment for each in client.get("/deployments", Paged[ListedDeployment], query).items]
    by_id = [each for each in found if each.id == called]
    return _only(by_id or [each for each in found if each.live] or found, called, "deployment")


def find_benchmark(client: Client, called: str) -> BenchmarkRow:
    """A benchmark run by its id, the start of it, or the name of what was measured where that was measured once.

    Raises:
        NotFoundError: none is called like that.
        UsageError: several are.
    """
    query: Query = {"text": called, "size": _MOST}
    return _only(client.get("/benchmarks", Paged[BenchmarkRow], query).items, called, "benchmark run", "bench")


def find_evaluation(client: Client, called: str) -> EvaluationRow:
    """An evaluation by its id, the start of it, or the name of what was evaluated where that was evaluated once.

    Raises:
        NotFoundError: none is called like that.
        UsageError: several are.
    """
    query: Query = {"text": called, "size": _MOST}
    return _only(client.get("/evaluations", Paged[EvaluationRow], query).items, called, "evaluation", "evaluate")


def _only(found: Sequence[N], called: str, what: str, listed: str | None = None) -> N:
    for fitting in (
        [each for each in found if each.id == called],
        [each for each in found if each.name == called],
        [each for each in found if each.id.startswith(called)],
    ):
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(f"{each.id} ({each.name})" for each in fitting[:10])
            raise UsageError(f"{called} could be any of {len(fitting)} {what}s: {names}", hint="Give more of its id.")
    raise NotFoundError(f"there is no {what} {called}", hint=f"`{listed or f'{what}s'} list` shows what there is.")
