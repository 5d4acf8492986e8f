"""Records as rows keep them, which another version of Roundhouse may have written."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import ConflictError

__all__ = ["stored"]

Kept = TypeVar("Kept", bound=BaseModel)


def stored(kind: type[Kept], told: Any, what: str) -> Kept:
    """A record from a row.

    Args:
        kind: of the record.
        told: what the row has.
        what: it belongs to, in words: ``benchmark run b00000000000``.

    Raises:
        ConflictError: this version cannot read it.
    """
    try:
        return kind.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise ConflictError(
            f"{what} cannot be shown: {said.removesuffix('.')}",
            hint="Another version of Roundhouse may have written it. With console and worker of one version it can be "
            "measured again; else remove it.",
        ) from None
