"""The form for an evaluation: every field a text, and what it comes to."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from ..benchmarks.form_words import words_of
from .requests import EvaluationRequest

__all__ = ["EvaluationForm"]

_Typed = Annotated[str, Field(max_length=2000)]
_OF_URL = ("url", "model", "server", "host")
_PLAIN = ("limit", "data", "gate_points", "seed", "request_timeout_s")
_FIELDS = {
    "engine_id": "engine",
    "deployment_id": "deployment",
    "against_engine_id": "against_engine",
    "against_evaluation_id": "against_evaluation",
    "overrides": "form",
}


class EvaluationForm(BaseModel):
    """What was typed."""

    model_config = ConfigDict(frozen=True)

    subject: _Typed = "engine"
    """``engine``, ``deployment`` or ``url``."""
    engine: _Typed = ""
    deployment: _Typed = ""
    url: _Typed = ""
    model: _Typed = ""
    api_key: SecretStr = SecretStr("")
    server: _Typed = ""
    host: _Typed = ""
    task: tuple[_Typed, ...] = ()
    """None: every shipped suite."""
    against: _Typed = "none"
    """``none``, ``engine`` or ``evaluation``."""
    against_engine: _Typed = ""
    against_evaluation: _Typed = ""
    limit: _Typed = ""
    data: _Typed = ""
    gate_points: _Typed = "0.8"
    seed: _Typed = "0"
    request_timeout_s: _Typed = ""
    idempotency_key: _Typed = ""

    def read(self) -> tuple[EvaluationRequest | None, dict[str, str]]:
        """What is asked for, and what is wrong by field; where something is, nothing is asked for."""
        given: dict[str, Any] = {name: text for name in _PLAIN if (text := getattr(self, name).strip())}
        given |= {"tasks": self.task, **self._subject(), **self._base()}
        errors = {}
        if self.against == "engine" and not self.against_engine:
            errors["against_engine"] = "choose an engine"
        if self.against == "evaluation" and not self.against_evaluation.strip():
            errors["against_evaluation"] = "write an evaluation's id"
        try:
            wanted = EvaluationRequest.model_validate(given)
        except ValidationError as error:
            found = {_field(each["loc"]): words_of(each) for each in reversed(error.errors())}
            return None, found | errors
        return (None if errors else wanted), errors

    def _subject(self) -> dict[str, Any]:
        if self.subject == "deployment":
            return {"deployment_id": self.deployment or None}
        if self.subject == "url":
            texts = {name: text for name in _OF_URL if (text := getattr(self, name).strip())}
            key = self.api_key.get_secret_value().strip()
            return texts | ({"api_key": key} if key else {})
        return {"engine_id": self.engine or None} | ({"host": self.host} if self.host else {})

    def _base(self) -> dict[str, Any]:
        if self.against == "engine":
            return {"against_engine_id": self.against_engine or None}
        if self.against == "evaluation":
            return {"against_evaluation_id": self.against_evaluation.strip() or None}
        return {}


def _field(place: tuple[int | str, ...]) -> str:
    """The field in which something was typed, from where it is in the request."""
    if not place:
        return "form"
    return _FIELDS.get(str(place[0]), str(place[0]))
