from __future__ import annotations

import pytest

from roundhouse.serve.openai.readiness import engine_problem

NOW = 1_700_000_000.0


def metrics(
    *,
    up: int = 1,
    flows: int = 1,
    guarded: int = 1,
    silence: float = 1.0,
    free: int = 95,
    used: int = 0,
    cached: int = 0,
    quarantined: int = 5,
) -> str:
    """Triton's metrics, ours among its own and another model's."""
    values = {
        "nv_inference_count": 7,
        "roundhouse_engine_up": up,
        "roundhouse_tokens_come_out": flows,
        "roundhouse_guard_alive": guarded,
        "roundhouse_status_time_seconds": NOW - silence,
        "roundhouse_kv_pages_free": free,
        "roundhouse_kv_pages_used": used,
        "roundhouse_kv_pages_cached": cached,
        "roundhouse_kv_pages_quarantined": quarantined,
    }
    return "".join(
        f'# HELP {name} x\n# TYPE {name} gauge\n{name}{{model="other"}} 7\n{name}{{model="m"}} {value}\n{name}{{model="n"}} 0\n'
        for name, value in values.items()
    )


@pytest.mark.parametrize(
    "text",
    [
        metrics(),
        metrics(silence=29.0),
        metrics(free=0, used=95),
        metrics(free=0, used=5, cached=90),
        metrics(free=0, used=0, quarantined=0),  # no report yet
    ],
)
def test_nothing_speaks_against_it(text: str) -> None:
    assert engine_problem(text, "m", NOW) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the engine process is down"),
        (metrics(up=0), "the engine process is down"),
        (metrics(flows=0), "requests are there, but no token comes out of the engine"),
        (metrics(guarded=0), "steps ran without the page check, which is on; the engine must be restarted"),
        (metrics(silence=31.0), "the engine process has not reported for 31 s"),
        (metrics(free=94, quarantined=6), "6 of 100 KV pages are quarantined; the engine must be restarted"),
        (metrics(free=0, used=94, quarantined=6), "6 of 100 KV pages are quarantined; the engine must be restarted"),
    ],
)
def test_problems_are_named(text: str, why: str) -> None:
    assert engine_problem(text, "m", NOW) == why
