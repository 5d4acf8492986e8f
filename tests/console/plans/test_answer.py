"""Whatever is typed, a plan form is answered: with a plan, or with what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import MACHINE, make_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundhouse.build.home import Home
from roundhouse.build.models.shipped import shipped_names
from roundhouse.build.planner.gpus import gpu_names
from roundhouse.console.models_allowed import AllowedModels
from roundhouse.console.plans.answer import answer_to
from roundhouse.console.plans.compare import compare
from roundhouse.console.plans.devices import Device, Devices
from roundhouse.console.plans.form import FIELDS, PlanForm
from roundhouse.console.plans.look_up import look_up_here
from roundhouse.console.plans.shown import shown_plan
from roundhouse.errors import ModelError

HERE = Devices((Device(key="cpu", label="here", group="This machine", hardware=MACHINE),))


@pytest.fixture
def models(tmp_path: Path) -> AllowedModels:
    return AllowedModels((), Home(tmp_path / "home"))


def answer(models: AllowedModels, **typed: str) -> dict[str, str]:
    return answer_to(PlanForm.read((key.replace("__", "."), value) for key, value in typed.items()), HERE, models).problems


TEXT = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["0", "1", "2", "8", "64", "1e99", "nan", "-1", "auto", "on", "~", "~nobody/x", "a/b", ".", "/", "٣", "1_0"]
    ),
)
CHOICES = {
    "model": st.sampled_from([f"shape:{name}" for name in shipped_names()]),
    "device": st.sampled_from(["cpu", *gpu_names()]),
    "target": st.sampled_from(["torch", "tensorrt", "trtllm-pytorch"]),
    "weights": st.sampled_from(["bf16", "fp8", "int4_awq", "w4a8_awq", "nvfp4", "as_is"]),
    "role": st.sampled_from(["prefill", "decode"]),
    "kv_cache": st.sampled_from(["bf16", "fp8"]),
    "memory": st.sampled_from(["memory_fraction", "kv_cache_bytes", "kv_cache_tokens"]),
}
NUMBERS = st.one_of(st.integers(1, 300), st.integers(1, 2**62)).map(str)
FORMS = st.fixed_dictionaries(
    {"model": st.one_of(CHOICES["model"], CHOICES["model"], TEXT)},
    optional={
        name: st.one_of(CHOICES.get(name, NUMBERS), CHOICES.get(name, NUMBERS), TEXT) for name in FIELDS if name != "model"
    },
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FORMS, st.lists(FORMS, max_size=2))
def test_whatever_is_typed_is_answered(models: AllowedModels, typed: dict[str, str], others: list[dict[str, str]]) -> None:
    compared = [("with", PlanForm.read(other.items()).query) for other in others]
    found = answer_to(PlanForm.read([*typed.items(), *compared]), HERE, models)
    assert found.plan is not None or found.problems or found.is_empty
    assert all(name in FIELDS and text for name, text in found.problems.items())
    compare(found, HERE, models)
    if found.plan is not None and found.recipe is not None:
        shown = shown_plan(found.plan, found.recipe, found.form)
        for choice in (choice for reason in shown.reasons for choice in reason.choices):
            assert choice.query is None or choice.query != found.form.full_query


def test_nothing_typed_is_no_problem(models: AllowedModels) -> None:
    assert answer_to(PlanForm(), HERE, models).is_empty
    assert answer_to(PlanForm.read([("device", "h200")]), HERE, models).is_empty


def test_files_elsewhere_are_not_read_and_nothing_is_told_of_them(models: AllowedModels, tmp_path: Path) -> None:
    outside = make_model(tmp_path / "elsewhere")
    there, absent = answer(models, model=outside), answer(models, model=str(tmp_path / "absent"))
    assert list(there) == ["model"]
    assert there["model"].replace(outside, "X") == absent["model"].replace(str(tmp_path / "absent"), "X")
    (tmp_path / "home" / "models").mkdir(parents=True)
    inside = make_model(tmp_path / "home" / "models" / "tiny")
    assert answer(models, model=inside) == {}
    (tmp_path / "home" / "models" / "link").symlink_to(outside)
    assert list(answer(models, model=str(tmp_path / "home" / "models" / "link"))) == ["model"]
    assert list(answer(models, model=inside, calibration__text="/etc/passwd")) == ["calibration.text"]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"device": "worker:gone"}, "device"),
        ({"device": "h1000"}, "device"),
        ({"request_tokens": "9000"}, "request_tokens"),
        ({"request_tokens": "0"}, "request_tokens"),
        ({"price": "-1"}, "price"),
        ({"price": "inf"}, "price"),
        ({"price": "1.7e308", "device": "h200", "model": "shape:llama-3.1-70b"}, "price"),
        ({"model": "shape:nothing"}, "model"),
        ({"model": "/home/models/" + "x" * 300}, "model"),
        ({"model": "~nobody-of-this-name/x"}, "model"),
    ],
)
def test_problems_that_only_a_plan_finds_belong_to_their_fields(
    models: AllowedModels, typed: dict[str, str], field: str
) -> None:
    assert list(answer(models, **({"model": "shape:smollm2-135m"} | typed))) == [field]


def test_a_model_is_read_again_when_its_files_change(models: AllowedModels, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "home" / "models" / "tiny")
    first = look_up_here(folder)
    assert look_up_here(folder) is first
    config = Path(folder, "config.json")
    config.write_text(config.read_text().replace('"num_hidden_layers": 30', '"num_hidden_layers": 7'))
    assert (first[0].layers, look_up_here(folder)[0].layers) == (30, 7)


def test_hub_models_are_planned_from_the_cache_and_never_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="downloads nothing"):
        look_up_here("some-org/tiny")
    cached = tmp_path / "models--some-org--tiny"
    make_model(cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    assert look_up_here("some-org/tiny")[0].layers == 30


def test_plans_side_by_side(models: AllowedModels) -> None:
    one, other = "model=shape%3Allama-3.1-8b&device=L40S", "model=shape%3Allama-3.1-8b&kv_cache=bf16&device=L40S"
    form = PlanForm.read([("model", "shape:llama-3.1-8b"), ("device", "L40S"), ("with", other), ("with", "model=shape:gone")])
    found = compare(answer_to(form, HERE, models), HERE, models)
    assert found is not None
    assert [(column.is_now, column.shown is not None) for column in found.columns] == [
        (True, True),
        (False, True),
        (False, False),
    ]
    assert "there is no shape" in found.columns[2].problem
    rows = dict(found.rows)
    assert rows["KV cache"] == ("fp8", "bf16", "–")
    assert rows["weights"][0] == rows["weights"][1]
    edited = PlanForm.read([*_pairs(found.columns[1].edit)])
    assert (edited.query, set(edited.compared)) == (other, {other, "model=shape%3Agone", one})
    assert "gone" not in found.columns[2].without


def _pairs(query: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return parse_qsl(query)
