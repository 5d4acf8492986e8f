"""What holds for every operation of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from populated import Populated, populate
from starlette.testclient import TestClient

from roundhouse.build.home import Home
from roundhouse.console.access.actor import SCOPES
from roundhouse.console.database.database import Database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app
from roundhouse.console.web.routes import api_description

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "api" / "operations.txt"
SECRETS_ARE_NOT_KEPT = {
    "post_account_tokens",  # its answer cannot be given again: the token is kept as a hash
    "post_users",  # a name is there once
    "post_deployments_by_deployment_id_key",
    "post_plans",
    "post_jobs_by_job_id_cancel",
    "post_deployments_by_deployment_id_give_up",
    "post_jobs_by_job_id_retry",
    "post_benchmarks_imports",  # a file is taken once
}
"""What is asked with POST and needs no key: nothing new comes of it, or it cannot be done twice."""

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return api_description()


@pytest.fixture
def app(database: Database, tmp_path: Path) -> FastAPI:
    return create_app(ConsoleSettings(home=Home(tmp_path / "home")), database)


@pytest.fixture
def there(database: Database, tmp_path: Path) -> Populated:
    return populate(database, Home(tmp_path / "home"))


@pytest.fixture
def admin(app: FastAPI, there: Populated) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {there.token}"})


def operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def parameters(operation: dict[str, Any], where: str) -> set[str]:
    return {each["name"].lower() for each in operation.get("parameters", ()) if each["in"] == where}


def test_no_operation_goes_and_none_asks_for_less_without_notice(description: dict[str, Any]) -> None:
    """What is added here, or changed on purpose, is written into the golden file by hand."""
    found = [f"{method} {path} {operation['x-scope']}" for method, path, operation in operations(description)]
    assert sorted(found) == GOLDEN.read_text().splitlines()


def test_every_operation_is_described_alike(description: dict[str, Any]) -> None:
    ids, summaries = [], []
    for method, path, operation in operations(description):
        name = f"{method} {path}"
        ids.append(operation["operationId"])
        summaries.append(operation["summary"])
        assert set(operation["x-scope"].split(" or ")) <= set(SCOPES), name
        assert operation["tags"] == [path.split("/")[3]], name
        assert operation["security"] == [{"token": []}, {"login": []}], name
        for status in ("400", "401", "403", "404", "409", "422", "503"):
            (media,) = operation["responses"][status]["content"].items()
            assert media == ("application/problem+json", {"schema": {"$ref": "#/components/schemas/Problem"}}), name
        (success,) = [int(status) for status in operation["responses"] if int(status) < 400]
        assert success == {"GET": 200, "PATCH": 200}.get(method, success), name
    assert len(set(ids)) == len(ids)
    assert len(set(summaries)) == len(summaries)
    assert "HTTPValidationError" not in description["components"]["schemas"]
    assert set(description["components"]["securitySchemes"]) == {"token", "login"}


def test_what_makes_something_new_takes_an_idempotency_key(description: dict[str, Any]) -> None:
    without = {
        operation["operationId"]
        for method, _, operation in operations(description)
        if method == "POST" and "idempotency-key" not in parameters(operation, "header")
    }
    assert without == SECRETS_ARE_NOT_KEPT


def test_every_list_is_paged_alike(description: dict[str, Any]) -> None:
    for _, path, operation in operations(description):
        answer = str(operation["responses"].get("200", {}).get("content"))
        assert ("Paged_" in answer) is ({"page", "size"} <= parameters(operation, "query")), path


@on_sqlite
def test_every_operation_refuses_parameters_that_it_does_not_know(
    description: dict[str, Any], admin: TestClient, there: Populated
) -> None:
    for method, path, _ in operations(description):
        answer = admin.request(method, named(path, there), params={"nonsense": "1"})
        assert answer.status_code == 422, f"{method} {path}: {answer.text}"
        assert "'nonsense'" in answer.json()["detail"] or "body" in answer.json()["detail"].lower() or answer.json()["errors"]
    hint = admin.get("/api/v1/jobs", params={"stat": "failed"}).json()["hint"]
    assert "state" in hint
    assert admin.get("/api/v1/account", params={"a": "b"}).json()["hint"] == "It takes none."


@on_sqlite
def test_every_operation_that_reads_answers_for_what_is_there(
    description: dict[str, Any], admin: TestClient, there: Populated
) -> None:
    for method, path, _ in operations(description):
        if method == "GET":
            answer = admin.get(named(path, there))
            assert answer.status_code == 200, f"{path}: {answer.text}"


@on_sqlite
def test_a_parameter_that_is_empty_is_left_out_and_one_that_is_none_is_named(
    description: dict[str, Any], admin: TestClient, there: Populated
) -> None:
    named_ones = 0
    for method, path, operation in operations(description):
        if method != "GET":
            continue
        for parameter in (each for each in operation.get("parameters", ()) if each["in"] == "query"):
            answer = admin.get(named(path, there), params={parameter["name"]: ""})
            assert answer.status_code == 200, f"{path} {parameter['name']}: {answer.text}"
            if "enum" in str(parameter["schema"]):
                wrong = admin.get(named(path, there), params={parameter["name"]: "nonsense"})
                fields = [each["field"] for each in wrong.json()["errors"]]
                assert (wrong.status_code, fields) == (422, [parameter["name"]]), f"{path}: {wrong.text}"
                named_ones += 1
    assert named_ones > 8


@on_sqlite
def test_errors_are_problem_details_of_their_kind(app: FastAPI, admin: TestClient) -> None:
    anybody = TestClient(app, base_url="http://127.0.0.1")
    for answer, status, kind in (
        (anybody.get("/api/v1/jobs"), 401, "login-needed"),
        (anybody.get("/api/v1/openapi.json"), 401, "login-needed"),
        (admin.get("/api/v1/jobs/9999"), 404, "not-found"),
        (admin.post("/api/v1/account/tokens", json={"name": "x", "scopes": ["read"]}), 403, "forbidden"),
        (admin.delete("/api/v1/deployments/aaaaaaaa"), 409, "conflict"),
        (admin.post("/api/v1/builds", json={"recipe": {"model": "demo:smollm2", "weigths": "fp8"}}), 422, "usage"),
        (admin.post("/api/v1/builds", json={"recipe": {"model": "shape:no-such-shape"}}), 422, "model"),
    ):
        problem = answer.json()
        assert (answer.status_code, problem["status"]) == (status, status), problem
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["type"] == f"urn:roundhouse:problem:{kind}"
    refused = admin.post("/api/v1/builds", json={"recipe": {"model": "shape:llama-3.1-8b", "tensor_parallel": 3}}).json()
    assert refused["type"] == "urn:roundhouse:problem:plan-refused"
    assert refused["reasons"]
    wrong = admin.get("/api/v1/jobs", params={"page": "0"}).json()
    assert (wrong["type"], wrong["errors"][0]["field"]) == ("about:blank", "page")


@on_sqlite
def test_what_is_sent_and_is_no_text_does_no_harm(admin: TestClient) -> None:
    headers = {"content-type": "application/json"}
    for body in (
        b'{"recipe": {"model": "\\ud800"}}',
        b'{"recipe": {"\\ud800": 1}}',
        b'{"\\ud800": 1}',
        b'{"recipe": {"model": "\\u0000"}}',
        b'{"recipe": {"model": "demo:smollm2", "seed": ' + b"9" * 5000 + b"}}",
        b'{"recipe": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"\xff\xfe",
    ):
        answer = admin.post("/api/v1/builds", content=body, headers=headers)
        assert answer.status_code in (400, 422), (body[:60], answer.text)
        assert answer.json()["detail"]


def named(path: str, there: Populated) -> str:
    return re.sub(r"{(\w+)}", lambda found: str(there.known[found[1]]), path)


def test_paths_in_the_documentation_exist(description: dict[str, Any]) -> None:
    patterns = [re.sub(r"{\w+}", "[^/]+", path) for path in description["paths"]]
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for path in re.findall(r"/api/v1/[\w/{}.-]+", page.read_text()):
            known = path == "/api/v1/openapi.json" or any(re.fullmatch(pattern, path.rstrip(".")) for pattern in patterns)
            assert known, f"{page.name} names {path}"
