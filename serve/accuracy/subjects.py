"""Whom an evaluation asks: looked at before anything is begun, opened when its turn comes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.build.recipe import Recipe
from roundhouse.build.store import EngineStore
from roundhouse.errors import UsageError

from ..free_memory import free_memory_for
from ..history import read_header, state_of
from ..measurement.about import Subject
from ..measurement.endpoints import api_key, base_url, is_here, model_at, port_of
from ..measurement.engines import subject_of
from ..measurement.processes import Family, families_at
from ..runtimes import require_runnable
from ..settings import EngineSettings
from .records import EvaluationHeader
from .scorer import Scorer
from .store import EvaluationStore
from .wish import EvaluationWish

__all__ = ["PreparedSubject", "StoredBase", "base_called", "prepare_base", "prepare_subject"]


@dataclass(frozen=True)
class PreparedSubject:
    """Somebody who can be asked. Nothing is loaded yet."""

    subject: Subject
    room: int | None
    """Tokens of a request at most; None where that is not known."""
    open: Callable[[threading.Event], Scorer]
    """Load it, or reach it."""
    here: bool
    """Whether it runs on this machine."""
    recipe: Recipe | None = None
    """Of an engine of ours; None for a server, of which it is not known."""
    families: tuple[Family, ...] | None = ()
    """Its processes that we have not started; None when they cannot be told from others'."""


@dataclass(frozen=True)
class StoredBase:
    """An earlier evaluation, whose answers are taken."""

    subject: Subject
    folder: Path
    header: EvaluationHeader


def prepare_subject(home: Home, wish: EvaluationWish) -> PreparedSubject:
    """Whom the wish is about.

    Raises:
        UsageError: there is no such engine or endpoint, or it cannot run like this here.
        EngineError: the engine is damaged.
    """
    if wish.url is not None:
        return _endpoint(wish, wish.url, wish.model, api_key(wish.api_key_variable), server=wish.server)
    return _engine(EngineStore(home).find(wish.engine or ""), wish)


def prepare_base(home: Home, wish: EvaluationWish) -> PreparedSubject | StoredBase | None:
    """What it is compared with: an engine or a URL, or else an evaluation; None when there is no comparison.

    Raises:
        UsageError: there is no such thing.
        EngineError: the engine is damaged.
    """
    if wish.against is None:
        return None
    if "://" in wish.against:
        try:
            return _endpoint(wish, wish.against, wish.against_model, _base_key(wish, wish.against))
        except UsageError as error:
            # Options of a subject have other names for a base.
            hint = error.hint and re.sub(r"--(model|api-key-variable)\b", r"--against-\1", error.hint)
            raise UsageError(error.message, hint=hint) from None
    base = base_called(home, wish.against)
    return _engine(base, wish) if isinstance(base, Engine) else _stored(base)


def _engine(engine: Engine, wish: EvaluationWish) -> PreparedSubject:
    require_runnable(engine)
    # The base is gone before the subject is loaded: each may take what memory there is.
    settings = EngineSettings.for_engine(engine, wish.overrides, free_memory=free_memory_for(engine))

    def load(stopping: threading.Event) -> Scorer:
        from .engine_scorer import EngineScorer

        return EngineScorer(engine, settings, stopping)

    subject = subject_of(engine, settings)
    return PreparedSubject(subject, settings.longest_request, load, here=True, recipe=engine.manifest.recipe)


def _base_key(wish: EvaluationWish, given: str) -> str | None:
    """The key of a base that is an endpoint. The subject's goes nowhere but to the subject's own server."""
    if wish.against_api_key_variable is not None:
        return api_key(wish.against_api_key_variable)
    same = wish.url is not None and _server_of(base_url(wish.url)) == _server_of(base_url(given))
    return api_key(wish.api_key_variable) if same else None


def _server_of(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, port_of(url)


def _endpoint(
    wish: EvaluationWish, given: str, wanted: str | None, key: str | None, *, server: str | None = None
) -> PreparedSubject:
    url = base_url(given)
    model = model_at(url, wanted, key)

    def reach(stopping: threading.Event) -> Scorer:
        from .endpoint_scorer import EndpointScorer

        return EndpointScorer(url, model, key, stopping, timeout_s=wish.request_timeout_s)

    subject = Subject(kind="endpoint", name=model, model=model, url=url, server=server)
    here = is_here(url)
    return PreparedSubject(subject, None, reach, here=here, families=families_at([url]) if here else None)


def base_called(home: Home, wanted: str) -> Engine | Path:
    """An engine that is to be the base, or the folder of an evaluation whose answers are taken, as people call it.

    Raises:
        UsageError: there is neither, or several are called so.
        EngineError: the engine is damaged.
    """
    try:
        return EngineStore(home).find(wanted)
    except UsageError as error:
        no_engine = error
    try:
        return EvaluationStore(home).records.find(wanted)
    except UsageError as no_evaluation:
        raise UsageError(
            f"neither an engine nor an evaluation can be taken: {no_engine.message}; {no_evaluation.message}",
            hint="`roundhouse engines list` and `roundhouse evaluate list` show what there is.",
        ) from None


def _stored(folder: Path) -> StoredBase:
    header = read_header(folder, EvaluationHeader)
    if state_of(folder) == "running":
        raise UsageError(f"evaluation {folder.name} is not finished yet")
    return StoredBase(header.subject, folder, header)
