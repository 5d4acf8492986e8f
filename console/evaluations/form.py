"""The form for an evaluation: every field a text, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from ..benchmarks.subject_form import SubjectForm, Typed
from .requests import EvaluationRequest

__all__ = ["EvaluationForm"]


class EvaluationForm(SubjectForm):
    """What was typed."""

    plain: ClassVar[tuple[str, ...]] = (*SubjectForm.plain, "limit", "data", "gate_points")
    renamed: ClassVar[Mapping[str, str]] = {
        **SubjectForm.renamed,
        "against_engine_id": "against_engine",
        "against_evaluation_id": "against_evaluation",
    }

    task: tuple[Typed, ...] = ()
    """None: every shipped suite."""
    against: Typed = "none"
    """``none``, ``engine`` or ``evaluation``."""
    against_engine: Typed = ""
    against_evaluation: Typed = ""
    limit: Typed = ""
    data: Typed = ""
    gate_points: Typed = "0.8"

    def read(self) -> tuple[EvaluationRequest | None, dict[str, str]]:
        """What is asked for, and what is wrong by field; where something is, nothing is asked for."""
        given = {**self.given(self.plain), "tasks": self.task, **self.asked_subject(), **self._base()}
        errors = {}
        if self.against == "engine" and not self.against_engine:
            errors["against_engine"] = "choose an engine"
        if self.against == "evaluation" and not self.against_evaluation.strip():
            errors["against_evaluation"] = "write an evaluation's id"
        try:
            wanted = EvaluationRequest.model_validate(given)
        except ValidationError as error:
            return None, self.problems(error) | errors
        return (None if errors else wanted), errors

    def _base(self) -> dict[str, Any]:
        if self.against == "engine":
            return {"against_engine_id": self.against_engine or None}
        if self.against == "evaluation":
            return {"against_evaluation_id": self.against_evaluation.strip() or None}
        return {}
