from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from shipped_plans import plan_of_shape, windowed_plan

from roundhouse.build.planner import report, report_parts
from roundhouse.build.planner.plan import Plan
from roundhouse.build.planner.report import PlanReport, PlanReports, json_of, json_schema, report_of

SCHEMA = Path(__file__).parents[3] / "docs" / "plan-schema.json"
ASKED_FOR = {
    "": "schema model target gpu gpus checkpoint_bytes weight_bytes_per_gpu kv_bytes_per_token kv_tokens pages "
    "requests_that_fit worst_case_bytes binding_limit legal problems decode assumptions",
    "problems": "code where message legal_alternatives",
    "decode": "concurrency tokens_per_s basis price_per_million_tokens",
}
PLANS: dict[str, Callable[[], Plan]] = {
    "legal": lambda: plan_of_shape("llama-3.1-8b", "l40s"),
    "priced": lambda: plan_of_shape("llama-3.1-8b", "l40s", price=1.2, kv_cache="bf16"),
    "refused": lambda: plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8),
    "too large": lambda: plan_of_shape("kimi-k2.6", "l40s", request_tokens=1000),
    "staged": lambda: plan_of_shape("deepseek-v3", "h200", tensor_parallel=4, pipeline_parallel=2),
    "sparse": lambda: plan_of_shape("glm-5.2", "h200", tensor_parallel=8, attention_data_parallel=True, weights="fp8"),
    "windows": windowed_plan,
    "cpu": lambda: plan_of_shape("smollm2-135m", "cpu", target="torch"),
}


@pytest.fixture(params=PLANS)
def made(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]()


def misfits(value: Any, schema: dict[str, Any], parts: dict[str, Any], at: str = "plan") -> list[str]:
    """Where a JSON value is not what a schema of the kind that we write says."""
    if "$ref" in schema:
        return misfits(value, parts[schema["$ref"].rpartition("/")[2]], parts, at)
    if "anyOf" in schema:
        each = [misfits(value, one, parts, at) for one in schema["anyOf"]]
        return min(each, key=len)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    kind = type(None) if schema["type"] == "null" else kinds[schema["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return [f"{at}: {value!r} is no {schema['type']}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return [f"{at}: {value!r} is not one of the constants"]
    if isinstance(value, list):
        return [wrong for n, item in enumerate(value) for wrong in misfits(item, schema["items"], parts, f"{at}[{n}]")]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    wrong = [f"{at}: {key} is missing" for key in schema.get("required", []) if key not in value]
    wrong += [f"{at}: {key} is not known" for key in value if key not in known]
    return wrong + [w for key in value if key in known for w in misfits(value[key], known[key], parts, f"{at}.{key}")]


def test_a_report_comes_back_unchanged_from_its_json(made: Plan) -> None:
    text = json.dumps(json_of([made]))
    assert PlanReport.model_validate_json(text) == report_of(made)


def test_the_json_is_what_the_shipped_schema_says(made: Plan) -> None:
    schema = json.loads(SCHEMA.read_text())
    assert misfits(json.loads(json.dumps(json_of([made]))), schema, schema["$defs"]) == []
    assert misfits(json.loads(json.dumps(json_of([made, made]))), schema, schema["$defs"]) == []


def test_the_schema_is_not_met_by_anything() -> None:
    schema, answer = json.loads(SCHEMA.read_text()), json_of([PLANS["refused"]()])
    for key, wrong in {"pages": 1.5, "schema": "roundhouse.plan/2", "legal": 1, "problems": [{}], "gpu": None}.items():
        assert misfits({**answer, key: wrong}, schema, schema["$defs"]), key
    assert misfits({key: value for key, value in answer.items() if key != "pages"}, schema, schema["$defs"])


def test_every_number_is_the_plans(made: Plan) -> None:
    answer, plan = json_of([made]), made.model_dump(mode="json")
    shared = (set(answer) & set(plan)) - {"hardware", "kv_layout", "stages", "problems"}
    assert len(shared) > 20
    assert {key: answer[key] for key in shared} == {key: plan[key] for key in shared}
    assert [tuple(each["legal_alternatives"]) for each in answer["problems"]] == [p.legal_alternatives for p in made.problems]
    assert sum(group["bytes_per_token"] for group in answer["kv_layout"]) == made.kv_bytes_per_token
    for group in answer["kv_layout"]:
        assert sum(field["layers"] * field["row_bytes"] for field in group["fields"]) == group["bytes_per_token"]


def test_the_keys_that_were_asked_for_are_there() -> None:
    answer = json_of([plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8)])
    assert answer["problems"]
    assert answer["decode"]
    assert not answer["legal"]
    for part, keys in ASKED_FOR.items():
        assert set(keys.split()) <= set(answer[part][0] if part else answer), part


def test_every_key_is_described() -> None:
    models = [
        model
        for module in (report, report_parts)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, report_parts.Report)
    ]
    assert len(models) > 8
    undescribed = [f"{m.__name__}.{name}" for m in models for name, field in m.model_fields.items() if not field.description]
    assert undescribed == []


def test_one_plan_is_the_object_itself_and_several_are_a_list() -> None:
    one, other = PLANS["legal"](), PLANS["refused"]()
    assert json_of([one])["schema"] == "roundhouse.plan/1"
    both = json_of([one, other])
    assert both["schema"] == "roundhouse.plans/1"
    assert both["plans"] == [json_of([one]), json_of([other])]
    assert PlanReports.model_validate_json(json.dumps(both)).plans == (report_of(one), report_of(other))


def test_unknown_keys_and_other_versions_are_refused() -> None:
    answer = json_of([PLANS["legal"]()])
    for change in ({"from_the_future": 1}, {"schema": "roundhouse.plan/2"}):
        with pytest.raises(ValidationError):
            PlanReport.model_validate({**answer, **change})


def test_the_memory_of_a_stage_adds_up_to_the_device(made: Plan) -> None:
    for stage in report_of(made).stages:
        parts = (stage.weight_bytes, stage.kv_bytes, stage.left_over_bytes, stage.taken_bytes)
        assert sum(parts) == made.hardware.total_memory


def test_what_does_not_fit_leaves_less_than_nothing() -> None:
    report = report_of(PLANS["too large"]())
    (stage,) = report.stages
    assert stage.left_over_bytes == report.hardware.free_bytes - report.weight_bytes_per_gpu < 0
    assert report.kv_bytes_per_token > 0
    assert report.worst_case_bytes > 0


def test_the_worst_case_fits_up_to_the_last_page() -> None:
    small = {"max_batch_size": 3, "max_seq_len": 2048}
    tokens = 3 * 2048
    assert report_of(plan_of_shape("llama-3.1-8b", "l40s", kv_cache_tokens=tokens, **small)).worst_case_fits
    assert not report_of(plan_of_shape("llama-3.1-8b", "l40s", kv_cache_tokens=tokens - 32, **small)).worst_case_fits


def test_with_windows_the_worst_case_needs_pages_of_every_group() -> None:
    longest = windowed_plan().requests_that_fit
    assert report_of(windowed_plan(max_batch_size=longest)).worst_case_fits
    assert not report_of(windowed_plan(max_batch_size=longest + 1)).worst_case_fits
    # Shared out for short requests, the pool has the bytes for one batch of longest ones, but not the pages.
    short = windowed_plan(max_batch_size=longest, request_tokens=4096)
    assert short.worst_case_bytes < short.kv_bytes
    assert not report_of(short).worst_case_fits


def test_the_recipe_in_the_answer_is_settled_and_plans_the_same_again() -> None:
    first = plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8)
    answer = json_of([first])
    assert (answer["recipe"]["target"], answer["recipe"]["weights"]) == ("trtllm-pytorch", "as_is")
    settled = {key: value for key, value in answer["recipe"].items() if key != "model"}
    again = json_of([plan_of_shape("kimi-k2.6", "h200", **settled)])
    assert {**again, "assumptions": []} == {**answer, "assumptions": []}  # nothing is left to be decided and said


def test_the_schema_names_its_dialect_and_both_forms() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {one["$ref"] for one in schema["anyOf"]} == {"#/$defs/PlanReport", "#/$defs/PlanReports"}
    for form in ("PlanReport", "PlanReports"):
        assert set(schema["$defs"][form]["required"]) == set(schema["$defs"][form]["properties"])
