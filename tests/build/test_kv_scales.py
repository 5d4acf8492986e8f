from __future__ import annotations

import math

import pytest

from roundhouse.build.kv_scales import classify_kv_scales
from roundhouse.errors import VerifyError

_NAMES = {
    "self_attn.k_proj.k_scale": "self_attn.v_proj.v_scale",
    "self_attn.k_scale": "self_attn.v_scale",
    "self_attn.k_proj.output_scale": "self_attn.v_proj.output_scale",
    "self_attn.kv_scale": None,
    "attention.kv_cache_scaling_factor": None,
}


def scales(k: str, v: str | None, value: object, layers: int = 2) -> dict[str, object]:
    return {f"model.layers.{layer}.{name}": value for layer in range(layers) for name in (k, v) if name}


@pytest.mark.parametrize(("k", "v"), _NAMES.items())
def test_every_name_they_go_by_is_known(k: str, v: str | None) -> None:
    report = classify_kv_scales(scales(k, v, [3.7]), layers=2, kv_cache="fp8")  # type: ignore[arg-type]  # object stands for both forms
    assert (report.state, report.k, report.v, report.unknown) == ("calibrated", (3.7, 3.7), (3.7, 3.7), ())
    assert report.warning is None


def test_all_ones_and_absent_are_recorded_as_warnings() -> None:
    k, v = next(iter(_NAMES.items()))
    ones = classify_kv_scales(scales(k, v, [1.0]), layers=2, kv_cache="fp8")  # type: ignore[arg-type]  # object stands for both forms
    assert ones.state == "all 1.0"
    assert "uncalibrated" in str(ones.warning)
    absent = classify_kv_scales({}, layers=2, kv_cache="fp8")
    assert absent.state == "absent"
    assert "no KV scales" in str(absent.warning)


@pytest.mark.parametrize("value", [[0.0], [math.nan], [math.inf], [-0.1], [1.0, 1.0], []])
def test_an_impossible_scale_is_an_error_that_names_it(value: list[float]) -> None:
    k, v = next(iter(_NAMES.items()))
    with pytest.raises(VerifyError, match=r"layers\.0\.self_attn\.k_proj\.k_scale"):
        classify_kv_scales(scales(k, v, value), layers=2, kv_cache="fp8")  # type: ignore[arg-type]  # object stands for both forms


def test_a_layer_without_scales_among_others_is_an_error() -> None:
    k, v = next(iter(_NAMES.items()))
    with pytest.raises(VerifyError, match=r"missing for layers \[1\]"):
        classify_kv_scales(scales(k, v, 2.0, layers=1), layers=2, kv_cache="fp8")  # type: ignore[arg-type]  # object stands for both forms


def test_an_unknown_name_with_scale_in_it_is_listed() -> None:
    values = {"model.layers.0.self_attn.mystery_scale": 2.0, "model.layers.0.mlp.up_proj.weight_scale": 1.0}
    report = classify_kv_scales(values, layers=2, kv_cache="bf16")
    assert report.unknown == ("model.layers.0.self_attn.mystery_scale",)
    assert report.state == "not used"
