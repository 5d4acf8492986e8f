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
        said = self._said(values)
        return f"{self._path}?{urlencode(said)}" if said else self._path

    def only(self, *names: str) -> str:
        """The address with nothing else set: the list without its filters, looked at as before."""
        return self(**{name: None for name in self._values if name not in names})

    def kept(self, *names: str) -> list[tuple[str, object]]:
        """What of these a form must say that has no fields for them, so that it does not drop them."""
        return [(name, value) for name, value in self._said(self._values).items() if name in names]

    def _said(self, values: dict[str, object]) -> dict[str, object]:
        usual = {"page": 1, **self._usual}
        return {key: value for key, value in values.items() if value not in (None, "") and value != usual.get(key)}
