"""One look at a deployment's pages: what its front says, or what was counted last and why it could not be asked."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from roundhouse.build.home import Home
from roundhouse.errors import RoundhouseError
from roundhouse.serve.page_map import PageMap

from ..database.database import Database
from ..deployments.queries import deployment
from ..deployments.records import DeploymentDetail
from ..errors import ConflictError
from ..playground.upstream import Upstream, find_upstream
from .asking import ask_page_map
from .records import PoolPages
from .telling import counted_pages, told_pages

__all__ = ["Looked", "look", "pool_pages"]


_Found = tuple[DeploymentDetail, Upstream | None, RoundhouseError | None]
"""A deployment, where to ask it, and why that is not known."""


@dataclass(frozen=True)
class Looked:
    """What was found; either the map, or why there is none."""

    deployment: DeploymentDetail
    told: PageMap | None
    why: RoundhouseError | None


async def look(database: Database, home: Home, deployment_id: str) -> Looked:
    """Ask a deployment. No connection to the database is held meanwhile.

    Args:
        database: which knows its address and key.
        home: of the console, which knows the key that secrets are sealed with.
        deployment_id: which.

    Raises:
        NotFoundError: there is no such deployment.
    """
    found, upstream, why = await run_in_threadpool(_find, database, home, deployment_id)
    if upstream is None:
        return Looked(found, None, why)
    try:
        return Looked(found, await ask_page_map(upstream), None)
    except ConflictError as error:
        unloading = found.state == "stopping"  # its front goes first: that it does not answer is nothing to wonder about
        return Looked(found, None, ConflictError(f"{found.name} is being unloaded") if unloading else error)


async def pool_pages(database: Database, home: Home, deployment_id: str) -> PoolPages:
    """A look, as it is told to programs; arguments and errors are those of :func:`look`."""
    looked = await look(database, home, deployment_id)
    if looked.told is None:
        return counted_pages(deployment_id, looked.deployment.sample, looked.why)
    return await run_in_threadpool(told_pages, deployment_id, looked.told)


def _find(database: Database, home: Home, deployment_id: str) -> _Found:
    with database.reading() as session:
        found = deployment(session, deployment_id)
        try:
            return found, find_upstream(session, deployment_id, home), None
        except RoundhouseError as error:
            return found, None, error
