"""Benchmarks and evaluations for programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from built import ID, add_built
from deployed import add_deployment
from fastapi.testclient import TestClient
from measured import add_benchmarks, benchmark_content, evaluation_content
from populated import HOME, HOST, add_worker, populate, token_of
from sqlalchemy import func, select

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.evaluations.recording import record_evaluation
from roundhouse.console.models import EngineReplica, Job, Preference
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app
from roundhouse.serve.benchmark.exporting import json_of
from roundhouse.serve.benchmark.records import Benchmark

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
B = "/api/v1/benchmarks"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def client(database: Database, home: Home) -> TestClient:
    app = create_app(ConsoleSettings(home=home), database)
    return TestClient(app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {token_of(database)}"})


def test_a_token_changes_no_choice_of_its_account(client: TestClient, database: Database, home: Home) -> None:
    """Which columns somebody looks at is theirs; a token, which may be for reading only, belongs to a program."""
    answer = client.post("/benchmarks/columns", data={"column": "note"}, headers={"origin": "http://127.0.0.1"})
    assert answer.status_code == 403
    assert "a token cannot do this" in answer.text.lower()
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Preference)) == 0


def test_a_run_is_marked_downloaded_and_deleted(client: TestClient, database: Database, home: Home) -> None:
    known = populate(database, home).known
    run = f"{B}/{known['benchmark_id']}"
    assert client.patch(run, json={"tags": ["Nightly"], "note": "fine", "baseline": True}).json()["tags"] == ["nightly"]
    assert client.patch(run, json={"note": ""}).json()["is_baseline"] is True
    (listed,) = client.get(B, params={"tag": "nightly", "baseline": True, "state": "finished"}).json()["items"]
    assert (listed["id"], listed["note"], listed["tags"]) == (known["benchmark_id"], "", ["nightly"])
    assert client.patch(run, json={"tags": ["two words"]}).status_code == 422
    assert client.patch(f"{B}/nothing", json={}).status_code == 404
    file = client.get(f"{run}/files/items.jsonl")
    assert (gzip.decompress(file.content), file.headers["content-type"]) == (b"{}\n", "application/gzip")
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''items.jsonl.gz"
    assert client.get(f"{run}/files/../../x").status_code == 404
    assert [each["number"] for each in client.get(f"{run}/samples", params={"after": 1}).json()["samples"]] == [2]
    assert client.get(f"{run}/record").json()["points"][0]["concurrency"] == 1
    assert client.delete(run).status_code == 204
    assert [client.get(each).status_code for each in (run, f"{run}/record", f"{run}/files/items.jsonl")] == [404] * 3
    assert client.delete(run).status_code == 404


def test_an_engine_is_measured_where_it_lies(client: TestClient, database: Database) -> None:
    wish = {"engine_id": ID, "concurrencies": [1], "repeats": 1}
    assert client.post(B, json=wish).status_code == 404
    with database.writing() as session:
        add_built(session)
    headers = {"idempotency-key": "k"}
    asked = client.post(B, json=wish, headers=headers)
    job = asked.json()
    assert (asked.status_code, asked.headers["location"]) == (202, f"/api/v1/jobs/{job['id']}")
    assert (job["kind"], job["engine_id"], job["host"], job["home"]) == ("benchmark", ID, HOST, HOME)
    assert client.post(B, json=wish, headers=headers).json()["id"] == job["id"]
    assert client.post(B, json={**wish, "repeats": 2}, headers=headers).status_code == 422
    assert client.post(B, json={**wish, "host": "elsewhere"}).status_code == 409
    with database.writing() as session:
        session.scalars(select(EngineReplica)).one().state = "damaged"
    refused = client.post(B, json=wish)
    assert (refused.status_code, "whole" in refused.json()["detail"]) == (409, True)


def test_a_deployment_is_measured_as_it_is_served(client: TestClient, database: Database, home: Home) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, "aaaaaaaa", engine_id=ID, host=HOST, home=HOME, openai="http://127.0.0.1:9000/v1")
        add_deployment(session, "bbbbbbbb", engine_id=ID, name="ended", state="stopped", host=HOST, home=HOME)
    job = client.post(B, json={"deployment_id": "aaaaaaaa"}).json()
    wish = job["payload"]["wish"]
    assert (wish["url"], wish["engine"], job["deployment_id"]) == ("http://127.0.0.1:9000/v1", ID, None)
    assert client.post(B, json={"deployment_id": "bbbbbbbb"}).status_code == 409
    assert client.post(B, json={"deployment_id": "cccccccc"}).status_code == 404


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"engine_id": "a", "url": "http://a"},
        {"url": "file:///etc/passwd"},
        {"url": "http://user:secret@gpu/v1"},
        {"engine_id": "a", "api_key": "k"},
        {"url": "http://a", "api_key": "has spaces"},
        {"url": "http://a", "driver": "loop"},
        {"engine_id": "a", "driver": "vllm"},
        {"engine_id": "a", "concurrencies": []},
        {"engine_id": "a", "concurrencies": [1, 1]},
        {"engine_id": "a", "concurrencies": [0]},
        {"engine_id": "a", "tokenizer": "/etc"},
        {"deployment_id": "a", "overrides": {"guard": "off"}},
        {"engine_id": "a", "workload": {"kind": "conversations", "file": "/etc/passwd"}},
        {"engine_id": "a", "workload": {"requests_each": 10**9}},
        {"engine_id": "a", "workload": {"input_tokens": 10**9}},
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(client: TestClient, database: Database, wish: dict[str, object]) -> None:
    refused = client.post(B, json=wish)
    assert refused.status_code == 422, refused.text
    assert "secret" not in refused.text
    with database.reading() as session:
        assert session.scalars(select(Job)).all() == []


def test_an_evaluation_and_its_base_are_in_one_home(client: TestClient, database: Database) -> None:
    other = "fedcba9876543210"
    with database.writing() as session:
        add_built(session)
        add_built(session, other, name="base", weights="bf16")
    job = client.post("/api/v1/evaluations", json={"engine_id": ID, "against_engine_id": other, "tasks": ["needle"]}).json()
    assert (job["payload"]["wish"]["against"], job["host"]) == (other, HOST)
    with database.writing() as session:
        for each in session.scalars(select(EngineReplica).where(EngineReplica.engine_id == other)):
            each.host = "elsewhere"
    refused = client.post("/api/v1/evaluations", json={"engine_id": ID, "against_engine_id": other})
    assert (refused.status_code, "and engine base whole" in refused.json()["detail"]) == (409, True)
    assert client.post("/api/v1/evaluations", json={"engine_id": ID, "against_engine_id": ID}).status_code == 422
    with database.writing() as session:
        record_evaluation(session, evaluation_content(0), "elsewhere", HOME)
        base = evaluation_content(0).header.id
    assert client.post("/api/v1/evaluations", json={"engine_id": ID, "against_evaluation_id": base}).status_code == 409
    job = client.post("/api/v1/evaluations", json={"url": "http://gpu", "against_evaluation_id": base}).json()
    assert (job["host"], job["home"], job["payload"]["wish"]["against"]) == ("elsewhere", HOME, base)
    assert client.post("/api/v1/evaluations", json={"url": "http://gpu", "against_evaluation_id": "x"}).status_code == 404


def test_what_runs_cannot_be_deleted_until_its_host_is_silent(client: TestClient, database: Database) -> None:
    worker = add_worker(database)
    with database.writing() as session:
        (run,) = add_benchmarks(session, 1, state="running", part=0.5)
        record_evaluation(session, evaluation_content(0, state="running"), HOST, HOME)
    evaluation = f"/api/v1/evaluations/{evaluation_content(0).header.id}"
    assert [client.delete(each).status_code for each in (f"{B}/{run}", evaluation)] == [409, 409]
    with database.writing() as session:
        row = session.merge(worker)
        row.ended_at = row.seen_at
    assert client.get(f"{B}/{run}").json()["state"] == client.get(evaluation).json()["state"] == "interrupted"
    assert [client.delete(each).status_code for each in (f"{B}/{run}", evaluation)] == [204, 204]
    assert client.get(B).json()["total"] == client.get("/api/v1/evaluations").json()["total"] == 0


def test_a_file_of_results_is_taken_once_and_may_be_large(client: TestClient) -> None:
    content = benchmark_content(0)
    fields = {each: getattr(content, each) for each in ("header", "state", "ended_at", "problem", "points", "prefill")}
    text = json_of([Benchmark(**fields)]) + " " * 2**21
    sent = {"name": "runs.json", "content": text}
    taken = client.post(f"{B}/imports", json=sent)
    assert (taken.status_code, taken.json()[0]["host"]) == (201, "")
    again = client.post(f"{B}/imports", json=sent)
    assert (again.status_code, "imported before" in again.json()["detail"]) == (409, True)
    assert client.post(f"{B}/imports", json={"name": "x", "content": "{}"}).status_code == 422
    assert client.post(B, content=json.dumps({"url": "http://a", "server": "x" * 2**21})).status_code == 413
