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
from ...benchmarks.subjects import hosts_of_workers, measurable_deployments
from ...deployments.placing import deployable_engines
from ...evaluations.actions import ask_evaluation
from ...evaluations.form import EvaluationForm
from ...evaluations.task_choices import PUBLIC, SHIPPED
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Builder, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/evaluations/new")
Typed = Annotated[EvaluationForm, Form()]
Id = Annotated[str, Query(max_length=64)]


@router.get("", dependencies=[needs("build")])
def form(page: Page, session: Reading, engine: Id = "", deployment: Id = "", against: Id = "") -> Response:
    """The form, for an engine or a deployment, and what it is compared with."""
    subject = "deployment" if deployment else "engine"
    base = {"against": "engine", "against_engine": against} if against else {}
    typed = EvaluationForm(subject=subject, engine=engine, deployment=deployment, **base)
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
        problem = error.message if error.hint is None else f"{error.message}. {error.hint}"
        return page("evaluations/new.html", 422, **{**shown, "errors": {typed.subject: problem}})
    return redirect(f"/builds/{job}", "It is in line to be evaluated.")


def _shown(session: Session, typed: EvaluationForm, errors: dict[str, str]) -> dict[str, Any]:
    """What the form's template needs: choices, and what was typed without its secrets."""
    engines = [(id_, f"{name} ({id_[:8]})") for id_, name in deployable_engines(session, typed.engine or None)]
    return {
        "form": typed.model_copy(update={"api_key": SecretStr("")}),
        "errors": errors,
        "engine_options": engines,
        "base_options": [("", "choose one"), *sorted(engines, key=lambda each: each[1])],
        "deployment_options": measurable_deployments(session, typed.deployment or None),
        "host_options": [("", "any that can"), *((host, host) for host in hosts_of_workers(session))],
        "shipped": SHIPPED,
        "public": PUBLIC,
        "idempotency_key": typed.idempotency_key or new_secret(),
    }
