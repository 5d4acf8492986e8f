"""Asking for an evaluation."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from pydantic import SecretStr
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ...access.sealing import Sealer
from ...access.secrets import new_secret
from ...evaluations.actions import ask_evaluation
from ...evaluations.form import EvaluationForm
from ...evaluations.task_choices import PUBLIC, SHIPPED
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..subject_choices import problem_at_subject, subject_choices
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/evaluations/new")
Typed = Annotated[EvaluationForm, Form()]
Id = Annotated[str, Query(max_length=64)]


@router.get("", dependencies=[needs("build")])
def form(
    page: Page,
    session: Reading,
    engine: Id = "",
    deployment: Id = "",
    url: Annotated[str, Query(max_length=500)] = "",
    against: Id = "",
) -> Response:
    """The form, for an engine, a deployment or an endpoint, and what it is compared with."""
    subject = "deployment" if deployment else "url" if url else "engine"
    base = {"against": "engine", "against_engine": against} if against else {}
    typed = EvaluationForm(subject=subject, engine=engine, deployment=deployment, url=url, **base)
    return page("evaluations/new.html", **_shown(session, typed, {}))


@router.post("")
def ask(request: Request, page: Page, session: Reading, actor: Builder, typed: Typed) -> Response:
    """Ask for it, or show the form again with what is wrong."""
    state = state_of(request)
    wanted, errors = typed.read()
    shown = _shown(session, typed, errors)
    if wanted is None:
        return page("evaluations/new.html", 422, **shown)
    session.close()  # whoever waits for a connection holds none
    try:
        with state.database.writing() as writing:
            sealer = Sealer.of(state.settings.home)
            job = ask_evaluation(writing, actor, wanted, sealer, key=typed.idempotency_key or None).id
    except UsageError as error:
        return page("evaluations/new.html", 422, **{**shown, "errors": problem_at_subject(typed, error)})
    return redirect(f"/builds/{job}", "It is in line to be evaluated.")


def _shown(session: Session, typed: EvaluationForm, errors: dict[str, str]) -> dict[str, Any]:
    """What the form's template needs: choices, and what was typed without its secrets."""
    choices = subject_choices(session, typed)
    return {
        "form": typed.model_copy(update={"api_key": SecretStr("")}),
        "errors": errors,
        "choices": choices,
        "base_options": [("", "choose one"), *sorted(choices.engines, key=lambda each: each[1])],
        "shipped": SHIPPED,
        "public": PUBLIC,
        "idempotency_key": typed.idempotency_key or new_secret(),
    }
