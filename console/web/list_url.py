"""Addresses of lists: what is filtered, sorted and paged is in the URL, and nothing that is as usual."""

from __future__ import annotations

from urllib.parse import urlencode

__all__ = ["ListUrl"]


class ListUrl:
    """The address of a list as it is seen now, from which those beside it are made.

    Args:
        path: of the list.
        usual: what the values are when the URL does not say.
        values: what they are now; None and an empty text are not set.
    """

    def __init__(self, path: str, usual: dict[str, object], **values: object) -> None:
        self._path = path
        self._usual = usual
        self._values = values

    def __call__(self, **changes: object) -> str:
        """The address with some values changed. A list that is filtered or sorted otherwise begins at its first page."""
        values = self._values | changes
        if "page" not in changes:
            values["page"] = 1
        usual = {"page": 1, **self._usual}
        said = {key: value for key, value in values.items() if value not in (None, "") and value != usual.get(key)}
        return f"{self._path}?{urlencode(said)}" if said else self._path
