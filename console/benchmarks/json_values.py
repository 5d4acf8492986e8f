"""Numbers in JSON that others wrote: taken where they are what they should be.

They are never cast by the database: PostgreSQL refuses the whole statement for one text among the numbers, and for a count
that its INTEGER cannot hold.
"""

from __future__ import annotations

__all__ = ["whole_number"]


def whole_number(value: object) -> int | None:
    """A value of JSON where it is a whole number; None where it is anything else, or not there."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
