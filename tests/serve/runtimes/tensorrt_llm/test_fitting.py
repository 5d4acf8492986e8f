"""Which settings a compiled engine runs with."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from driving import settings
from engine_configs import compiled_engine, engine_config

from roundhouse.build.compiled import CompiledGuard
from roundhouse.build.engine import Engine
from roundhouse.errors import EngineError, UsageError
from roundhouse.serve.runtimes import fitted_settings
from roundhouse.serve.settings import EngineSettings

GUARD = CompiledGuard(file="guard.engine", plugin="embedded", rows=8, columns=16, pages=64)


def fitted(
    engine: Engine, folder: Path, how: EngineSettings, guard: CompiledGuard | None = None, **config: Any
) -> EngineSettings:
    return fitted_settings(compiled_engine(engine, folder, guard=guard, **config), how)


def changed(how: EngineSettings, **keys: Any) -> EngineSettings:
    return how.model_copy(update=keys)


def test_an_engine_that_takes_chunks_runs_as_it_is_asked_to(tiny_engine: Engine, tmp_path: Path) -> None:
    how = settings(prefix_reuse=True)
    assert fitted(tiny_engine, tmp_path, how, guard=GUARD) == how


def test_without_paged_context_attention_prompts_are_whole_and_fit_a_step(
    tiny_engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = compiled_engine(tiny_engine, tmp_path, plugins={"use_paged_context_fmha": False})
    with caplog.at_level(logging.WARNING):
        whole = fitted_settings(engine, settings(prefix_reuse=True))
    assert (whole.chunked_prompts, whole.prefix_reuse, whole.max_seq_len) == (False, False, 64)
    assert "requests may have 64 tokens" in caplog.text
    assert fitted_settings(engine, whole) == whole


def test_requests_are_no_longer_than_prompts_that_the_engine_takes(tiny_engine: Engine, tmp_path: Path) -> None:
    """A preempted request is a prompt with its answer so far."""
    assert fitted(tiny_engine, tmp_path, settings(), build={"max_input_len": 100}).max_seq_len == 100


@pytest.mark.parametrize(
    ("keys", "config", "says"),
    [
        ({"max_batch_size": 9}, {}, "max_batch_size 9 is above its 8"),
        ({"max_num_tokens": 65}, {}, "max_num_tokens 65 is above its 64"),
        ({"max_seq_len": 129}, {}, "max_seq_len 129 is above its 128"),
        ({"page_tokens": 16}, {}, "page_tokens 16 is not its 8"),
        ({"precision": "reference"}, {}, "the reference runs on the torch target only"),
        ({"kernels": "native"}, {}, "kernels native is for the torch target"),
        ({"guard": "tags+content"}, {"tp": 2}, "lie on 2 GPUs; use tags"),
        ({}, {"guard": GUARD.model_copy(update={"rows": 7})}, "max_batch_size 8 is above the 7 of its page check"),
        ({}, {"guard": GUARD.model_copy(update={"columns": 15})}, "pages of a request 16 is above the 15"),
    ],
)
def test_what_the_engine_was_not_built_for_is_refused(
    tiny_engine: Engine, tmp_path: Path, keys: dict[str, Any], config: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        fitted(tiny_engine, tmp_path, changed(settings(), **keys), **config)
    assert refused.value.message.startswith(f"engine {tiny_engine.manifest.id} cannot run like this: ")


@pytest.mark.parametrize("limit", ["memory_fraction", "half of free memory", "max_batch_size x max_seq_len"])
def test_the_pool_has_no_more_pages_than_the_page_check_counts(
    tiny_engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: str
) -> None:
    """More memory may be free than was foreseen when it was built: that is no mistake of anybody's."""
    how = settings()
    how = changed(how, kv=how.kv.model_copy(update={"bytes": 64 * 100, "binding_limit": limit}))
    engine = compiled_engine(tiny_engine, tmp_path, guard=GUARD.model_copy(update={"pages": 60}))
    with caplog.at_level(logging.WARNING):
        less = fitted_settings(engine, how)
    kv = less.kv
    assert (kv.pages, kv.group_pages, kv.tokens, kv.bytes) == (60, (60,), 480, 6000)
    assert kv.binding_limit == "the page check that was built with the engine"
    assert f"{limit} leaves room for 64 KV pages; the pool has the 60 that its page check counts" in caplog.text
    assert fitted_settings(engine, less) == less


@pytest.mark.parametrize("key", ["kv_cache_bytes", "kv_cache_tokens"])
def test_a_pool_that_somebody_gave_the_size_of_is_not_made_smaller(tiny_engine: Engine, tmp_path: Path, key: str) -> None:
    how = settings()
    how = changed(how, kv=how.kv.model_copy(update={"binding_limit": key}))
    with pytest.raises(UsageError, match=f"pages by {key} 64 is above the 60 of its page check"):
        fitted(tiny_engine, tmp_path, how, guard=GUARD.model_copy(update={"pages": 60}))


def test_the_page_check_s_limits_do_not_matter_where_it_is_off(tiny_engine: Engine, tmp_path: Path) -> None:
    small = GUARD.model_copy(update={"pages": 1})
    assert fitted(tiny_engine, tmp_path, settings(guard="off"), guard=small).guard == "off"


def test_an_engine_without_anything_compiled_is_refused(tiny_engine: Engine, tmp_path: Path) -> None:
    engine = compiled_engine(tiny_engine, tmp_path)
    without = Engine(engine.folder, engine.manifest.model_copy(update={"compiled": None}))
    with pytest.raises(EngineError, match="holds nothing that TensorRT-LLM runs"):
        fitted_settings(without, settings())
    (tmp_path / "compiled" / "config.json").write_text(json.dumps(engine_config() | {"version": ""}))
    with pytest.raises(EngineError, match="version"):
        fitted_settings(engine, settings())


def test_pages_of_other_bytes_than_the_plan_s_are_refused(tiny_engine: Engine, tmp_path: Path) -> None:
    engine = compiled_engine(tiny_engine, tmp_path)
    other = engine_config(model={"quantization": {"kv_cache_quant_algo": "FP8"}})
    (tmp_path / "compiled" / "config.json").write_text(json.dumps(other))
    with pytest.raises(EngineError, match=r"its KV pages take 2,048 B, and 8,192 B by its plan"):
        fitted_settings(engine, settings())


def test_the_torch_target_takes_settings_as_they_are(tiny_engine: Engine) -> None:
    how = settings(precision="reference", guard="tags+content")
    assert fitted_settings(tiny_engine, how) is how
