"""The form for a new deployment, which says what would run and what cannot, before anything is started."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import Response
from pydantic import SecretStr
from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ...access.sealing import Sealer
from ...access.secrets import new_secret
from ...deployments.actions import ask_deploy
from ...deployments.foreseeing import foresee
from ...deployments.form import DeployForm
from ...deployments.placing import deployable_engines, deployable_hosts, find_engine, names_in_use
from ...deployments.queries import deployment
from ...errors import NotFoundError
from ..page import Page
from ..rendering import redirect
from ..state import state_of
from ..who import Deployer, Reading, needs

__all__ = ["router"]

router = APIRouter(prefix="/deployments/new")
Typed = Annotated[DeployForm, Form()]
Id = Annotated[str, Query(max_length=64)]


@router.get("", dependencies=[needs("deploy")])
def form(page: Page, session: Reading, engine: Id = "", like: Id = "") -> Response:
    """The form, for an engine, or with the settings of another deployment."""
    if like:
        before = deployment(session, like)
        typed = DeployForm.like(before.settings, before.host)
    else:
        choices = deployable_engines(session, engine or None)
        chosen = engine or (choices[0][0] if choices else "")
        typed = DeployForm(engine=chosen, name=next((name for id_, name in choices if id_ == chosen), ""))
    return page("deployments/new.html", **_shown(session, typed, {}))


@router.post("/check")
def check(page: Page, session: Reading, _: Deployer, typed: Typed) -> Response:
    """What would run, for a form that is being filled in. Changes nothing."""
    return page.fragment("deployments/foreseen.html", checking=True, **_shown(session, typed, typed.read()[2]))


@router.post("")
def deploy(request: Request, page: Page, session: Reading, actor: Deployer, typed: Typed) -> Response:
    """Ask for it, or show the form again with what is wrong."""
    state = state_of(request)
    settings, secrets, errors = typed.read()
    if settings is None:
        return page("deployments/new.html", 422, **_shown(session, typed, errors))
    shown = _shown(session, typed, {})
    if shown["foreseen"] is not None and shown["foreseen"].problem:
        return page("deployments/new.html", 422, **shown)
    session.close()  # whoever waits for a connection holds none
    try:
        with state.database.writing() as writing:
            row, _ = ask_deploy(
                writing,
                actor,
                settings,
                secrets,
                Sealer.of(state.settings.home),
                on_host=typed.host or None,
                idempotency_key=typed.idempotency_key or None,
            )
            made = row.id
    except UsageError as error:
        problem = error.message if error.hint is None else f"{error.message}. {error.hint}"
        return page("deployments/new.html", 422, **{**shown, "errors": {"form": problem}})
    return redirect(f"/deployments/{made}", flash="It is being deployed.")


def _shown(session: Session, typed: DeployForm, errors: dict[str, str]) -> dict[str, Any]:
    """What the form's template needs: choices, what was typed without its secrets, and what it would come to."""
    engine = find_engine(session, typed.engine) if typed.engine else None
    if typed.engine and engine is None and not errors:
        raise NotFoundError(f"there is no engine {typed.engine}")
    hosts = deployable_hosts(session, typed.engine)
    host = next((each for each in hosts if typed.host in ("", each.host)), None)
    overrides, wrong = typed.overrides()
    hardware = host.hardware if host else None
    taken = names_in_use(session, typed.name.strip())
    return {
        "form": typed.model_copy(update={"api_key": SecretStr(""), "control_value": SecretStr("")}),
        "errors": errors,
        "engines": (engines := deployable_engines(session, typed.engine or None)),
        "engine_options": [(id_, f"{name} ({id_[:8]})") for id_, name in engines],
        "host_options": [("", "the one with the most free disk"), *((each.host, each.host) for each in hosts)],
        "engine": engine,
        "hosts": hosts,
        "host": host,
        "taken": taken.get(host.host) if host else None,
        "foreseen": foresee(engine.manifest, overrides, hardware) if engine and not wrong else None,
        "idempotency_key": typed.idempotency_key or new_secret(),
    }
