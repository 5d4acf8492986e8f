"""Moments of records, wherever they were written down."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter, ValidationError

from roundhouse.serve.history.moments import Moment

MOMENTS = TypeAdapter(Moment)


def test_a_moment_of_another_zone_is_the_same_one_in_utc() -> None:
    found = MOMENTS.validate_json('"2026-05-01T12:00:00+02:00"')
    assert (found, found.tzinfo) == (datetime(2026, 5, 1, 10, tzinfo=UTC), UTC)
    assert MOMENTS.dump_json(found) == b'"2026-05-01T10:00:00Z"'


@pytest.mark.parametrize("text", ["2026-05-01T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_what_is_no_moment_of_this_age_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        MOMENTS.validate_python(text)
