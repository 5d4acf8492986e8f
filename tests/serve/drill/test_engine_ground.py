"""The drill with a model that really runs."""

from __future__ import annotations

import logging
from random import Random

import pytest

from roundhouse.build.engine import Engine
from roundhouse.serve.drill.drill import cases_of, run_drill
from roundhouse.serve.drill.engine_ground import engine_grounds
from roundhouse.serve.drill.kinds import KINDS
from roundhouse.serve.drill.levels import Level


def test_faults_around_a_real_model_are_stopped_in_time(tiny_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    ground = engine_grounds(tiny_engine)
    report = run_drill(ground, cases_of([Level("tags+content")], [None, *KINDS]), seed=3, steps=100, engine="e")
    assert report.passed
    for kind in report.kinds:
        assert kind.effective == kind.detected
        assert (kind.effective > 0) is (kind.fault is not None)


def test_content_faults_leak_where_only_tags_are_compared(tiny_engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    report = run_drill(engine_grounds(tiny_engine), cases_of([Level("tags")], ["rows_permuted"]), seed=3, steps=100)
    (kind,) = report.kinds
    assert kind.effective > kind.detected == 0
    assert kind.leaked_tokens > 0


def test_rows_of_one_token_lie_where_the_runtime_wrote_them(tiny_engine: Engine) -> None:
    """A swap of two rows is a swap of these tokens' keys and values in every layer, and of nothing else."""
    pages = engine_grounds(tiny_engine)(Random(0)).pages
    size = pages.page_tokens
    runtime = pages._runtime  # type: ignore[attr-defined]
    slots = runtime.pages.buffer
    slots.random_(0, 256)
    before = {(name, layer): view.clone() for (name, layer), view in runtime.pages._views.items()}
    pages.swap(3, 0, size - 1)
    pages.overwrite(4, 1, source=5)
    for key, view in runtime.pages._views.items():
        expected = before[key].clone()
        expected[3, [0, size - 1]] = before[key][3, [size - 1, 0]]
        assert (view[3].view(runtime.pages.buffer.dtype) == expected[3].view(runtime.pages.buffer.dtype)).all()
        assert (view[5] == expected[5]).all()
        assert (view[4, 1].view(slots.dtype) == ~expected[5, 1].view(slots.dtype)).all()
        assert (view[4, 2:].view(slots.dtype) == expected[4, 2:].view(slots.dtype)).all()
