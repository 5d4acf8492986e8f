"""What the forms of benchmarks and evaluations have in common: what is measured, from where, and how requests are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from .form_words import words_of

__all__ = ["SubjectForm", "Typed"]

Typed = Annotated[str, Field(max_length=2000)]
"""A field as it was typed."""


class SubjectForm(BaseModel):
    """What was typed. Forms add fields of their own, and say which are sent on as they are."""

    model_config = ConfigDict(frozen=True)

    plain: ClassVar[tuple[str, ...]] = ("seed", "request_timeout_s")
    """Fields that are called in the request as they are here; empty ones are left out."""
    of_url: ClassVar[tuple[str, ...]] = ("url", "model", "server", "host")
    """Likewise, where an endpoint elsewhere is measured."""
    renamed: ClassVar[Mapping[str, str]] = {"engine_id": "engine", "deployment_id": "deployment", "overrides": "form"}
    """In which field something was typed that is called otherwise in the request."""

    subject: Typed = "engine"
    """``engine``, ``deployment`` or ``url``."""
    engine: Typed = ""
    deployment: Typed = ""
    url: Typed = ""
    model: Typed = ""
    api_key: SecretStr = SecretStr("")
    server: Typed = ""
    host: Typed = ""
    seed: Typed = "0"
    request_timeout_s: Typed = ""
    idempotency_key: Typed = ""

    def given(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Of these fields what was typed into them."""
        return {name: text for name in names if (text := getattr(self, name).strip())}

    def asked_subject(self) -> dict[str, Any]:
        """What the request says of what is measured."""
        if self.subject == "deployment":
            return {"deployment_id": self.deployment or None}
        if self.subject == "url":
            key = self.api_key.get_secret_value().strip()
            return self.given(self.of_url) | ({"api_key": key} if key else {})
        return {"engine_id": self.engine or None} | self.given(("host",))

    def problems(self, error: ValidationError) -> dict[str, str]:
        """What is wrong by field, of a request that cannot be; of several things the first."""
        return {self.field(each["loc"]): words_of(each) for each in reversed(error.errors())}

    def field(self, place: tuple[int | str, ...]) -> str:
        """The field in which something was typed, from where it is in the request."""
        return self.renamed.get(str(place[0]), str(place[0])) if place else "form"
