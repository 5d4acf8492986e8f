"""Asking for a benchmark: a form that says what would be measured, and about how long that takes."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from pydantic import SecretStr
from sqlalchemy.orm import Session

from roundhouse.build.recipe import Guard
from roundhouse.errors import UsageError

from ...access.sealing import Sealer
from ...access.secrets import new_secret
from ...benchmarks.actions import ask_benchmark
from ...benchmarks.foreseeing import foresee
from ...benchmarks.form import BenchmarkForm, may_be_asked_again
from ...benchmarks.queries import benchmark_detail
from ...benchmarks.workloads import named_workloads
from ...errors import ConflictError
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..subject_choices import problem_at_subject, subject_choices
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/benchmarks/new")
Typed = Annotated[BenchmarkForm, Form()]
Id = Annotated[str, Query(max_length=64)]


@router.get("", dependencies=[needs("build")])
def form(
    page: Page,
    session: Reading,
    engine: Id = "",
    deployment: Id = "",
    url: Annotated[str, Query(max_length=500)] = "",
    again: Id = "",
) -> Response:
    """The form, for an engine, a deployment or an endpoint, or as another run was measured."""
    if again:
        header = benchmark_detail(session, again).header
        if not may_be_asked_again(header):
            raise ConflictError(f"run {again} cannot be asked for here", hint="Its page has the command that measured it.")
        return page("benchmarks/new.html", **_shown_again(session, BenchmarkForm.again(header), header.subject.name))
    subject = "deployment" if deployment else "url" if url else "engine"
    typed = BenchmarkForm(subject=subject, engine=engine, deployment=deployment, url=url)
    return page("benchmarks/new.html", **_shown(session, typed, {}))


@router.post("/check")
def check(page: Page, session: Reading, _: Builder, typed: Typed) -> Response:
    """What would be measured, for a form that is being filled in. Changes nothing."""
    return page.fragment("benchmarks/foreseen.html", checking=True, **_shown(session, typed, typed.read()[1]))


@router.post("")
def ask(request: Request, page: Page, session: Reading, actor: Builder, typed: Typed) -> Response:
    """Ask for it, or show the form again with what is wrong."""
    state = state_of(request)
    wanted, errors = typed.read()
    if wanted is None:
        return page("benchmarks/new.html", 422, **_shown(session, typed, errors))
    shown = _shown(session, typed, {})
    session.close()  # whoever waits for a connection holds none
    try:
        with state.database.writing() as writing:
            sealer = Sealer.of(state.settings.home)
            job = ask_benchmark(writing, actor, wanted, sealer, key=typed.idempotency_key or None).id
    except UsageError as error:
        return page("benchmarks/new.html", 422, **{**shown, "errors": problem_at_subject(typed, error)})
    return redirect(f"/builds/{job}", "It is in line to be measured.")


def _shown_again(session: Session, typed: BenchmarkForm, name: str) -> dict[str, Any]:
    """The form as a run was measured. Where its engine is gone another stands there, and that is said."""
    shown = _shown(session, typed, {})
    if typed.subject != "engine" or typed.engine in dict(shown["choices"].engines):
        return shown
    said = f"The engine that was measured, {name} ({typed.engine[:8]}), is gone. Choose another, or build it again."
    return _shown(session, typed.model_copy(update={"engine": ""}), {"engine": said})


def _shown(session: Session, typed: BenchmarkForm, errors: dict[str, str]) -> dict[str, Any]:
    """What the form's template needs: choices, what was typed without its secrets, and what it would come to."""
    choices = subject_choices(session, typed)
    if not typed.engine and choices.engines:
        typed = typed.model_copy(update={"engine": choices.engines[0][0]})
    if not typed.deployment and choices.deployments:
        typed = typed.model_copy(update={"deployment": choices.deployments[0][0]})
    wanted = typed.read()[0]
    return {
        "form": typed.model_copy(update={"api_key": SecretStr("")}),
        "errors": errors,
        "choices": choices,
        "guard_options": [("", "as the recipe says"), *((name, name) for name in get_args(Guard))],
        "workload_options": [
            ("own", "these numbers"),
            *((name, f"{name}: {each.words}") for name, each in named_workloads().items()),
        ],
        "without_aiperf": [host for host, has_aiperf in choices.hosts.items() if not has_aiperf],
        "wanted": wanted,
        "foreseen": foresee(session, wanted) if wanted is not None else None,
        "idempotency_key": typed.idempotency_key or new_secret(),
    }
