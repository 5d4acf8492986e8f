"""Every router: pages for people, and the API."""

from __future__ import annotations

from fastapi import FastAPI

from . import health
from .api import builds as builds_api
from .api import deployments as deployments_api
from .api import engines as engines_api
from .api import jobs as jobs_api
from .api import plans as plans_api
from .pages import (
    builds,
    deployment_actions,
    deployment_form,
    deployment_streams,
    deployments,
    drills,
    engine_actions,
    engines,
    home,
    integrity,
    job_log,
    login,
    new_build,
    plan,
    playground,
)

__all__ = ["add_routes"]

_PAGES = (
    health,
    login,
    home,
    plan,
    new_build,
    builds,
    job_log,
    engines,
    engine_actions,
    deployment_form,
    deployments,
    deployment_actions,
    deployment_streams,
    playground,
    drills,
    integrity,
)
_API = (plans_api, builds_api, jobs_api, engines_api, deployments_api)


def add_routes(app: FastAPI) -> None:
    """Mount them."""
    for pages in _PAGES:
        app.include_router(pages.router, include_in_schema=False)
    for api in _API:
        app.include_router(api.router)
