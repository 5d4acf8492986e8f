"""Subjects that are measured together are told apart."""

from __future__ import annotations

from typing import Any

from roundhouse.serve.benchmark.labels import labels_of, settings_words
from roundhouse.serve.measurement.about import Subject


def subject(name: str, **settings: Any) -> Subject:
    return Subject(kind="engine", name=name, model="m", settings=settings or None)


def test_different_names_are_enough() -> None:
    assert labels_of([subject("a", guard="off"), subject("b", guard="tags")]) == ["a", "b"]


def test_one_engine_twice_is_called_by_what_differs() -> None:
    off = subject("a", guard="off", max_batch_size=4, prefix_reuse=True, kv={"tokens": 640, "pages": 40})
    on = subject("a", guard="tags", max_batch_size=4, prefix_reuse=True, kv={"tokens": 640, "pages": 40})
    larger = subject("a", guard="tags", max_batch_size=4, prefix_reuse=True, kv={"tokens": 1280, "pages": 80})
    assert labels_of([off, on]) == ["a (guard=off)", "a (guard=tags)"]
    assert labels_of([on, larger, subject("b")]) == ["a (kv_cache_tokens=640)", "a (kv_cache_tokens=1280)", "b"]


def test_what_does_not_differ_is_numbered() -> None:
    assert labels_of([subject("a", guard="off"), subject("a", guard="off")]) == ["a (1)", "a (2)"]
    both = [subject("a", guard="off"), subject("a", guard="off"), subject("a", guard="tags")]
    assert labels_of(both) == ["a (guard=off, 1)", "a (guard=off, 2)", "a (guard=tags)"]
    assert labels_of([subject("a"), subject("a")]) == ["a (1)", "a (2)"]


def test_settings_of_elsewhere_may_say_less() -> None:
    both = [subject("a", guard="off", kv=None), subject("a", guard="tags", kv={})]
    assert labels_of(both) == ["a (guard=off)", "a (guard=tags)"]


def test_settings_are_told_in_a_line_and_none_of_an_endpoint() -> None:
    told = settings_words(subject("a", guard="off", prefix_reuse=True, kv={"tokens": 640, "pages": 40}))
    assert told == "guard=off, prefix_reuse=true, kv_cache_tokens=640"
    assert settings_words(subject("a")) == ""
