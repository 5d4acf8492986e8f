"""What to call subjects that are measured together, so that nobody takes one for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..measurement.about import Subject

__all__ = ["labels_of", "settings_words"]


def labels_of(subjects: Sequence[Subject]) -> list[str]:
    """The name of each; with the settings in which they differ, or else a number, where several are called alike."""
    times = Counter(subject.name for subject in subjects)
    return [
        subject.name if times[subject.name] == 1 else f"{subject.name} ({_difference(subject, subjects, index)})"
        for index, subject in enumerate(subjects)
    ]


def settings_words(subject: Subject) -> str:
    """The settings that an engine ran with, in a line; empty for an endpoint, whose settings nobody knows."""
    return ", ".join(f"{key}={value}" for key, value in _plain(subject.settings).items())


def _difference(subject: Subject, subjects: Sequence[Subject], index: int) -> str:
    alike = [_plain(each.settings) for each in subjects if each.name == subject.name]
    mine = _plain(subject.settings)
    differing = [f"{key}={value}" for key, value in mine.items() if any(each.get(key) != value for each in alike)]
    told = ", ".join(differing)
    same = sum(_plain(each.settings) == mine for each in subjects if each.name == subject.name)
    return told if told and same == 1 else f"{told}, {index + 1}" if told else str(index + 1)


def _plain(settings: dict[str, Any] | None) -> dict[str, Any]:
    """Settings in words: of the KV budget only its size."""
    flat = {key: value for key, value in (settings or {}).items() if not isinstance(value, dict)}
    if settings and (tokens := (settings.get("kv") or {}).get("tokens")) is not None:
        flat["kv_cache_tokens"] = tokens
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in flat.items()}
