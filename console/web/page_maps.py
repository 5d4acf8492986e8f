"""What the templates of a page map need."""

from __future__ import annotations

from typing import Any

from roundhouse.errors import RoundhouseError

from ..deployments.records import DeploymentDetail
from ..page_maps.cells import cells_of, counted_cells
from ..page_maps.looking import Looked
from ..page_maps.telling import counted_pages, told_pages

__all__ = ["FEW_CELLS", "MOST_CELLS", "counted", "drawn"]

MOST_CELLS, FEW_CELLS = 1536, 512
"""Of a map, in rows of 64, and of a small one."""


def counted(found: DeploymentDetail, why: RoundhouseError | None = None, most: int = MOST_CELLS) -> dict[str, Any]:
    """A pool as its latest sample counted it.

    Args:
        found: whose.
        why: what kept its front from being asked.
        most: cells.
    """
    pool = counted_pages(found.id, found.sample, why)
    return {"deployment": found, "pool": pool, "drawn": counted_cells(pool, most), "marked": None}


def drawn(looked: Looked, most: int, marked: int | None) -> dict[str, Any]:
    """A pool as its front told it, or as it was counted.

    Args:
        looked: what was found.
        most: cells.
        marked: a page that is asked about.
    """
    if looked.told is None:
        return counted(looked.deployment, looked.why, most) | {"marked": marked}
    pool = told_pages(looked.deployment.id, looked.told)
    return {
        "deployment": looked.deployment,
        "pool": pool,
        "drawn": cells_of(looked.told, most, marked),
        "marked": marked,
    }
