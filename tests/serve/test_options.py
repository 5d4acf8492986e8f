"""Options of a command line, from fields and back."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator

from roundhouse.serve.options import OptionNames

NAMES = OptionNames({"limit": "--most"})


class Inner(BaseModel):
    max_length: int = Field(default=1, ge=1)


class Wish(BaseModel):
    limit: int = 1
    lengths: tuple[int, ...] = ()
    inner: Inner = Inner()

    @model_validator(mode="after")
    def _fits(self) -> Wish:
        if self.limit > 9:
            raise ValueError("that is too much")
        return self


def test_a_field_is_typed_as_its_option() -> None:
    assert NAMES.typed("limit", 3) == ["--most", "3"]
    assert NAMES.typed("max_length", 2.0) == ["--max-length", "2"]
    assert NAMES.typed("rate", 2.5) == ["--rate", "2.5"]
    assert NAMES.typed("name", "-v") == ["--name=-v"], "else it would be an option"
    assert [NAMES.typed("prefix_reuse", value) for value in (True, False)] == [["--prefix-reuse"], ["--no-prefix-reuse"]]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"limit": "x"}, "--most x: Input should be"),
        ({"lengths": [1, "y"]}, "--lengths y: Input should be"),
        ({"inner": {"max_length": 0}}, "--max-length 0: Input should be"),
        ({"limit": 10}, "the wish: that is too much"),
    ],
)
def test_what_does_not_fit_is_told_by_its_option(values: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError) as error:
        Wish.model_validate(values)
    assert NAMES.misfit(error.value, whole="the wish").message.startswith(says)
