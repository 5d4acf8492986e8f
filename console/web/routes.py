"""Every router: pages for people, and the API."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI

from roundhouse import __version__

from . import health, metrics
from .api import account as account_api
from .api import audit as audit_api
from .api import benchmarks as benchmarks_api
from .api import builds as builds_api
from .api import deployments as deployments_api
from .api import drills as drills_api
from .api import engines as engines_api
from .api import evaluations as evaluations_api
from .api import integrity as integrity_api
from .api import jobs as jobs_api
from .api import overview as overview_api
from .api import plans as plans_api
from .api import settings as settings_api
from .api import users as users_api
from .api import workers as workers_api
from .api.description import (
    PROBLEMS,
    bearer,
    cookie,
    describe,
    note_scopes,
    only_known_parameters,
    operation_id,
)
from .pages import (
    account,
    audit,
    benchmark_actions,
    benchmark_export,
    benchmark_import,
    benchmark_new,
    benchmark_run,
    benchmarks,
    builds,
    compare,
    deployment_actions,
    deployment_form,
    deployment_pages,
    deployment_streams,
    deployments,
    drills,
    engine_actions,
    engines,
    evaluation_new,
    evaluations,
    home,
    integrity,
    job_log,
    login,
    new_build,
    plan,
    playground,
    published,
    rows,
    settings,
    trends,
    users,
    workers,
)

__all__ = ["add_routes", "api_description"]

_PAGES = (
    health,
    metrics,
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
    deployment_pages,
    playground,
    compare,
    trends,
    rows,
    published,
    benchmarks,
    benchmark_new,
    benchmark_import,
    benchmark_export,
    benchmark_actions,
    benchmark_run,  # after all that have a word where it has an id
    evaluation_new,
    evaluations,
    drills,
    integrity,
    workers,
    users,
    account,
    audit,
    settings,
)
_API = (
    overview_api,
    plans_api,
    builds_api,
    jobs_api,
    engines_api,
    deployments_api,
    integrity_api,
    drills_api,
    benchmarks_api,
    evaluations_api,
    workers_api,
    users_api,
    account_api,
    audit_api,
    settings_api,
)

_OF_API = [Depends(bearer), Depends(cookie), Depends(only_known_parameters)]


def add_routes(app: FastAPI) -> None:
    """Mount them."""
    for pages in _PAGES:
        app.include_router(pages.router, include_in_schema=False)
    for api in _API:
        note_scopes(api.router)
        app.include_router(api.router, responses=PROBLEMS, dependencies=_OF_API)


def api_description() -> dict[str, Any]:
    """The OpenAPI document of the API, without an application that serves it."""
    app = FastAPI(title="Roundhouse", version=__version__, generate_unique_id_function=operation_id)
    add_routes(app)
    return describe(app)
