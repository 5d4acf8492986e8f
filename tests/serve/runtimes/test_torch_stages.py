"""Stages within a forward pass: all of them are heard, whatever computes them, and tokens stay the same."""

from __future__ import annotations

import pytest
from driving import random_prompt, request, serve, settings, tokens

from roundhouse.build.home import Home
from roundhouse.errors import SetupError
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.serve.engine.stages import StageClock
from roundhouse.serve.runtimes import create_loop

LAYERS, LINEARS_OF_A_LAYER = 2, 7


@pytest.mark.parametrize("weights", ["int4_awq", "bf16"])
@pytest.mark.parametrize(
    ("kernels", "precision"), [("step", "engine"), ("native", "engine"), ("torch", "engine"), ("torch", "reference")]
)
def test_linears_attention_and_the_head_are_heard(
    build_engine, session_home: Home, weights: str, kernels: str, precision: str
) -> None:
    if kernels in ("native", "step"):
        try:
            load_kernels(session_home.kernels)
        except SetupError as error:
            pytest.skip(str(error))
    engine = build_engine("llama", weights=weights, kv_cache="bf16")
    chosen = settings(precision=precision).model_copy(update={"kernels": kernels})
    clock = StageClock()
    loop = create_loop(engine, chosen, stages=clock)
    asked = [request(str(number), random_prompt(20, seed=number), max_tokens=6) for number in range(3)]
    outputs = serve(loop, *asked)
    steps = clock.counts["forward"]
    assert steps == loop.status().steps
    assert clock.counts["linears"] == steps * (1 if kernels == "step" else LAYERS * LINEARS_OF_A_LAYER)
    assert clock.counts["lm_head"] == steps
    assert clock.counts["attention"] == steps * (1 if kernels == "step" else LAYERS + 1), "its tables, and each layer"
    assert all(clock.seconds[stage] > 0 for stage in ("forward", "attention", "linears", "lm_head"))
    plain = serve(create_loop(engine, chosen), *asked)
    assert {name: tokens(each) for name, each in outputs.items()} == {name: tokens(each) for name, each in plain.items()}
