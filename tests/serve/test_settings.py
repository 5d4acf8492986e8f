"""What an engine process is allowed to start with."""

from __future__ import annotations

import pytest

from roundhouse.errors import UsageError
from roundhouse.serve.settings import EngineSettings, Overrides


def test_pages_beyond_free_memory_are_refused_naming_both_sizes_and_the_key(tiny_engine) -> None:
    weights = tiny_engine.manifest.plan.weight_bytes_per_gpu
    page = tiny_engine.manifest.plan.kv_bytes_per_token * tiny_engine.manifest.recipe.page_tokens
    with pytest.raises(UsageError) as refused:
        EngineSettings.for_engine(tiny_engine, Overrides(kv_cache_bytes=10**13), free_memory=1 << 30)
    assert f"weights ({weights:,} B) and KV pages ({10**13 // page * page:,} B, from kv_cache_bytes)" in refused.value.message
    assert "exceed the 1,073,741,824 B of free memory" in refused.value.message
    assert refused.value.hint == "Lower kv_cache_bytes, or free memory."


@pytest.mark.parametrize("key", ["kv_cache_tokens", "kv_cache_bytes"])
@pytest.mark.parametrize("precision", ["engine", "reference"])
def test_what_fits_exactly_is_taken_and_a_byte_less_is_not(tiny_engine, key: str, precision: str) -> None:
    overrides = Overrides(**{key: 1 << 14})
    taken = EngineSettings.for_engine(tiny_engine, overrides, free_memory=1 << 30, precision=precision)
    plan = tiny_engine.manifest.plan
    needed = (plan.weight_bytes_per_gpu if precision == "engine" else 2 * plan.base_bytes) + taken.kv.bytes
    assert EngineSettings.for_engine(tiny_engine, overrides, free_memory=needed, precision=precision) == taken
    with pytest.raises(UsageError, match=f"from {key}\\) exceed the {needed - 1:,} B"):
        EngineSettings.for_engine(tiny_engine, overrides, free_memory=needed - 1, precision=precision)


def test_weights_that_do_not_fit_are_refused_without_a_memory_key(tiny_engine) -> None:
    with pytest.raises(
        UsageError, match=r"weights \([\d,]+ B\) and KV pages \(0 B, from half of free memory\) exceed"
    ) as refused:
        EngineSettings.for_engine(tiny_engine, Overrides(), free_memory=1000)
    assert refused.value.hint == "Free memory, or run a smaller engine."
