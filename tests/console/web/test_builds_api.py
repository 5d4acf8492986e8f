"""Plans, builds and jobs for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, BrowserMaker
from building import add_job, add_worker, make_model

from roundhouse.console.database.database import Database


@pytest.fixture
def api(browser: BrowserMaker) -> Browser:
    client = browser("operator", "ann")
    client.headers |= {"origin": "http://127.0.0.1", "x-form-token": client.form_token("/")}
    return client


@pytest.fixture
def model(tmp_path: Path) -> str:
    return make_model(tmp_path / "home" / "models" / "tiny")


def test_a_plan_is_what_the_command_answers(api: Browser) -> None:
    wanted = {"recipe": {"model": "shape:llama-3.1-8b", "weights": "int4_awq"}, "device": "l40s", "request_tokens": 8192}
    answer = api.post("/api/v1/plans", json=wanted)
    assert answer.status_code == 200
    told = answer.json()
    assert (told["schema"], told["legal"], told["kv_tokens"], told["gpu"]) == ("roundhouse.plan/1", True, 542_304, "L40S")
    refused = api.post(
        "/api/v1/plans", json={"recipe": {"model": "shape:llama-3.1-70b", "weights": "bf16"}, "device": "l40s"}
    ).json()
    assert (refused["legal"], len(refused["problems"])) == (False, 1)


def test_what_cannot_be_planned_is_a_problem_in_words(api: Browser) -> None:
    asked: tuple[dict[str, Any], ...] = (
        {"recipe": {"weights": "fp8"}},
        {"recipe": {"model": "/etc/passwd"}},
        {"recipe": {"model": "shape:qwen3-8b"}, "device": "nothing"},
        {"recipe": {"model": "shape:qwen3-8b"}, "request_tokens": 10**9},
        {"recipe": {"model": "shape:qwen3-8b"}, "price_per_gpu_hour": "inf"},
        {"recipe": {"model": "shape:qwen3-8b"}, "junk": 1},
        {"recipe": []},
    )
    for wanted in asked:
        answer = api.post("/api/v1/plans", json=wanted)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        assert answer.json()["detail"]


def test_what_can_be_planned_is_listed(api: Browser, database: Database, model: str) -> None:
    add_worker(database)
    assert [device["key"] for device in api.get("/api/v1/plans/devices").json()][:2] == ["worker:forge", "cpu"]
    assert {model, "shape:kimi-k2"} <= set(api.get("/api/v1/plans/models").json())


def test_a_build_from_its_start_to_its_cancelling(api: Browser, model: str) -> None:
    headers = {"idempotency-key": "once-only-please"}
    answers = [api.post("/api/v1/builds", json={"recipe": {"model": model}}, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    place = answers[0].headers["location"]
    assert place == answers[1].headers["location"] == "/api/v1/jobs/1"
    job = api.get(place).json()
    assert (job["job"]["state"], job["job"]["payload"]) == ("queued", {"recipe": {"model": model}})
    assert job["waiting"].startswith("No worker is alive")
    assert api.get("/api/v1/builds").json()["total"] == 1
    for action, state in (("cancel", "cancelled"), ("retry", "queued")):
        assert [api.post(f"{place}/{action}").json()["state"] for _ in range(2)] == [state, state]
    refused = api.post("/api/v1/builds", json={"recipe": {"model": model, "weights": "nvfp4"}})
    assert refused.status_code == 422
    assert "NVFP4" in refused.json()["detail"]


def test_jobs_of_every_kind_and_their_logs(api: Browser, database: Database) -> None:
    first, second = add_job(database, "failed", lines=5), add_job(database, "running", kind="drill", lines=2)
    assert [job["id"] for job in api.get("/api/v1/jobs").json()["items"]] == [second, first]
    assert [job["id"] for job in api.get("/api/v1/jobs?kind=drill").json()["items"]] == [second]
    assert [job["id"] for job in api.get("/api/v1/builds?state=failed&who=ann").json()["items"]] == [first]
    log = api.get(f"/api/v1/jobs/{first}/log?after=2&most=2").json()
    assert (log["attempt"], [line["text"] for line in log["lines"]]) == (1, ["line 3", "line 4"])
    assert api.get(f"/api/v1/jobs/{first}/log?attempt=9").status_code == 404
    assert api.get("/api/v1/jobs/999").status_code == 404
    assert api.get("/api/v1/jobs?size=1000").status_code == 422
