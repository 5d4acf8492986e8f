"""What can be measured, and from where, for the forms of benchmarks and evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from roundhouse.errors import UsageError

from ..benchmarks.subject_form import SubjectForm
from ..benchmarks.subjects import hosts_of_workers, measurable_deployments
from ..deployments.placing import deployable_engines

__all__ = ["SubjectChoices", "problem_at_subject", "subject_choices"]


@dataclass(frozen=True)
class SubjectChoices:
    """For the fields of a form: values with their labels."""

    engines: Sequence[tuple[str, str]]
    deployments: Sequence[tuple[str, str]]
    hosts: Mapping[str, bool]
    """Of live workers, and whether aiperf is there."""

    @property
    def host_options(self) -> list[tuple[str, str]]:
        """Any of them, or one."""
        return [("", "any that can"), *((host, host) for host in self.hosts)]


def subject_choices(session: Session, typed: SubjectForm) -> SubjectChoices:
    """What there is to choose from; what was chosen comes first, also where it is gone by now."""
    return SubjectChoices(
        engines=[(id_, f"{name} ({id_[:8]})") for id_, name in deployable_engines(session, typed.engine or None)],
        deployments=measurable_deployments(session, typed.deployment or None),
        hosts=hosts_of_workers(session),
    )


def problem_at_subject(typed: SubjectForm, error: UsageError) -> dict[str, str]:
    """What is said at the field of what was to be measured, where it cannot be asked for."""
    return {typed.subject: error.message if error.hint is None else f"{error.message}. {error.hint}"}
