"""Windows, latents and indexers: which layers have them, as transformers' own config classes find it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import FAMILIES, LATENT, TINY_MODEL, config_of
from stored import CONFIG, shape_of

from roundhouse.build.models.config import shape_from_config
from roundhouse.errors import ModelError

SPARSE = {**LATENT, "index_n_heads": 2, "index_head_dim": 8, "index_topk": 4}
QWEN = {"model_type": "qwen3", "sliding_window": 64}


def windows_of(config: Any) -> tuple[int | None, tuple[int, ...]]:
    """Transformers' windows: which layers slide, where the config names types; all or none where it does not."""
    types = getattr(config, "layer_types", None)
    if not config.sliding_window:
        return None, ()
    sliding = range(config.num_hidden_layers) if types is None else (n for n, kind in enumerate(types) if "sliding" in kind)
    found = tuple(sliding)
    return (config.sliding_window, found) if found else (None, ())


ABSENT = "absent"
QWENS = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")


@pytest.mark.parametrize("family", ["gemma2", "gemma3_text", "gpt_oss", "cohere2", "mistral", "mixtral", *QWENS])
def test_windows_of_configs_that_name_no_layer_types(family: str) -> None:
    from transformers import AutoConfig

    choices: dict[str, tuple[Any, ...]] = {"num_hidden_layers": (31,), "sliding_window": (ABSENT, None, 64)}
    if family in QWENS:
        choices |= {"use_sliding_window": (ABSENT, True, False), "max_window_layers": (ABSENT, 3)}
    if family in ("gemma3_text", "cohere2"):
        choices |= {"sliding_window_pattern": (ABSENT, 1, 3)}
    for values in itertools.product(*choices.values()):
        said = {key: value for key, value in zip(choices, values, strict=True) if value != ABSENT}
        found = shape_of(model_type=family, **said)
        theirs = AutoConfig.for_model(family, **TINY_MODEL | said)
        assert (found.sliding_window, found.sliding_layers) == windows_of(theirs), said


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("llama", "glm4_moe", "deepseek_v2")])
def test_windows_are_the_same_once_transformers_wrote_the_config(family: str) -> None:
    theirs = config_of(family, **({"use_sliding_window": True, "max_window_layers": 1} if family.startswith("qwen") else {}))
    found = shape_from_config(theirs.to_dict(), stored_dtype="bfloat16")
    expected = windows_of(theirs) if hasattr(theirs, "sliding_window") else (None, ())
    assert (found.sliding_window, found.sliding_layers) == expected


def test_layer_types_decide_whatever_else_is_said() -> None:
    types = ["full_attention", "sliding_attention"]
    found = shape_of(
        sliding_window=64, layer_types=types, sliding_window_pattern="LG", max_window_layers=9, model_type="gemma2"
    )
    assert (found.sliding_window, found.sliding_layers) == (64, (1,))
    assert found.unread == ()


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"sliding_window": 64}, (0, 1)),
        ({"sliding_window": 64, "layer_types": ["sliding_window_attention", "local_attention"]}, (0, 1)),
        ({"sliding_window": 64, "layer_types": ["full_attention", "global_attention"]}, ()),
        ({"sliding_window": 0}, ()),
        ({"sliding_window": None, "layer_types": ["sliding_attention", "full_attention"]}, ()),
        ({"sliding_window": 64, "use_sliding_window": False, "layer_types": ["sliding_attention"] * 2}, ()),
        (QWEN, ()),
        (QWEN | {"use_sliding_window": True}, ()),
        (QWEN | {"use_sliding_window": True, "max_window_layers": 1}, (1,)),
    ],
)
def test_which_layers_slide(changes: dict[str, Any], layers: tuple[int, ...]) -> None:
    found = shape_of(**changes)
    assert (found.sliding_window, found.sliding_layers) == (64 if layers else None, layers)


def test_a_window_that_reaches_over_the_longest_request_is_none() -> None:
    assert shape_of(sliding_window=511).has_windows
    assert not shape_of(sliding_window=512).has_windows


@pytest.mark.parametrize("kind", ["linear_attention", "chunked_attention", "conv", "mamba"])
def test_a_type_of_layer_that_is_not_known_is_refused(kind: str) -> None:
    with pytest.raises(ModelError, match=f"layer_types names {kind}: what these layers keep in the cache") as refused:
        shape_of(layer_types=["full_attention", kind])
    assert "sliding_attention" in str(refused.value.hint)


def test_a_latent_has_no_heads() -> None:
    """Case 11: the head size of a latent is its rotary part, whatever ``head_dim`` says beside it."""
    found = shape_of(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, head_dim=56)
    assert found.latent is not None
    assert (found.latent.q_lora_rank, found.latent.row_elements, found.head_dim) == (None, 576, 64)
    assert found.unread == ()


@pytest.mark.parametrize("key", ["qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"])
def test_half_a_latent_is_refused(key: str) -> None:
    with pytest.raises(ModelError, match=f"has no {key}"):
        shape_of(**LATENT | {key: None})


@settings(max_examples=40)
@given(data=st.data(), layers=st.integers(1, 90))
def test_indexer_layers_are_those_of_transformers(data: st.DataObject, layers: int) -> None:
    from transformers import GlmMoeDsaConfig

    kinds = st.lists(st.sampled_from(["full", "shared"]), min_size=layers, max_size=layers)
    absent = st.just(ABSENT)
    keys = {
        "index_topk_freq": data.draw(absent | st.integers(1, 8)),
        "index_skip_topk_offset": data.draw(absent | st.integers(0, 100)),
        "index_topk_pattern": data.draw(
            absent | absent | kinds | kinds.map(lambda names: "".join(n[0].upper() for n in names))
        ),
        "indexer_types": data.draw(absent | absent | st.none() | kinds),
    }
    said = {key: value for key, value in keys.items() if value != ABSENT}
    theirs = GlmMoeDsaConfig(num_hidden_layers=layers, **said)
    found = shape_from_config({**CONFIG, **SPARSE, **said, "num_hidden_layers": layers}, stored_dtype=None).indexer
    assert found is not None
    assert found.layers == tuple(n for n, kind in enumerate(theirs.indexer_types) if kind == "full")


@pytest.mark.parametrize("key", ["index_n_heads", "index_head_dim", "index_topk"])
def test_half_an_indexer_is_refused(key: str) -> None:
    with pytest.raises(ModelError, match=f"has no {key}"):
        shape_of(**SPARSE | {key: None})


def test_an_indexer_without_latents_is_refused() -> None:
    with pytest.raises(ModelError, match="index_topk and no kv_lora_rank"):
        shape_of(**SPARSE | {"kv_lora_rank": None})
