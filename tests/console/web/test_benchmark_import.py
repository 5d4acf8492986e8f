"""Results that were measured elsewhere are sent with a form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import ORIGIN, BrowserMaker
from measured import add_benchmarks
from sqlalchemy import select

from roundhouse.console.benchmarks.sent import MOST_BYTES
from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry, BenchmarkRun

PAGE = "/benchmarks/import"
DATA = Path(__file__).parents[2] / "serve" / "benchmark" / "importing" / "data"


def file(*path: str) -> tuple[str, tuple[str, bytes]]:
    return "file", (path[-1], DATA.joinpath(*path).read_bytes())


def test_only_who_may_measure_may_import(browser: BrowserMaker) -> None:
    assert browser("viewer").get(PAGE).status_code == 403
    assert PAGE not in browser("viewer", "vic").get("/benchmarks").text
    assert f'href="{PAGE}"' in browser("operator").get("/benchmarks").text


def test_a_file_becomes_a_run_that_is_shown(browser: BrowserMaker, database: Database) -> None:
    typed = {"server": "vLLM on 8×H200", "model": "qwen3-8b"}
    answer: Any = browser("operator").submit(PAGE, typed, page=PAGE, files=[file("vllm", "c2.json")])
    with database.reading() as session:
        (run,) = session.scalars(select(BenchmarkRun)).all()
        assert session.scalar(select(AuditEntry.action).where(AuditEntry.subject == run.id)) == "benchmark.import"
    assert str(answer.url).endswith(f"/benchmarks/{run.id}")
    for words in ("It was imported.", "imported from c2.json", "vLLM on 8×H200"):
        assert words in answer.text
    assert run.model == "qwen3-8b"


def test_a_file_that_is_too_large_to_be_kept_is_named_on_the_page_that_follows(
    browser: BrowserMaker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundhouse.console.benchmarks.sent_files.MOST_FILE_BYTES", 100)
    answer: Any = browser("operator").submit(PAGE, page=PAGE, files=[file("vllm", "c2.json")])
    assert "It was imported. Too large to be kept with it, c2.json was read and left out." in answer.text
    assert "/files/left-out.txt" in answer.text


def test_several_files_lead_to_the_list_of_what_was_imported(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    with database.writing() as session:
        add_benchmarks(session, 2)
    exported = operator.get("/benchmarks/export?run=b00000000000&run=b00000000001").content
    operator.submit("/benchmarks/delete", {"run": "b00000000000"}, page="/benchmarks/delete?run=b00000000000")
    operator.submit("/benchmarks/delete", {"run": "b00000000001"}, page="/benchmarks/delete?run=b00000000001")
    with database.writing() as session:  # as the worker of their home does once it has deleted the folders
        for run in session.scalars(select(BenchmarkRun)):
            session.delete(run)
    answer: Any = operator.submit(PAGE, page=PAGE, files=[("file", ("ours.json", exported)), file("vllm", "c2.json")])
    assert str(answer.url).endswith("/benchmarks?imported=true")
    assert "3 runs were imported." in answer.text
    assert "imported files" in answer.text


def test_single_requests_of_aiperf_come_with_their_result(browser: BrowserMaker, database: Database) -> None:
    both = [file("aiperf", "profile_export_aiperf.json"), file("aiperf", "profile_export.jsonl")]
    answer: Any = browser("operator").submit(PAGE, page=PAGE, files=both)
    for name in ("profile_export_aiperf.json", "profile_export.jsonl"):
        assert f"/files/{name}" in answer.text


def test_what_is_wrong_is_said_on_the_page_and_nothing_is_taken(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    wrong = {
        "holds single requests": [file("aiperf", "profile_export.jsonl")],
        "notes.json is not JSON": [file("vllm", "c2.json"), ("file", ("notes.json", b"hello"))],
        "other.json is no result that can be imported": [("file", ("other.json", json.dumps({"a": 1}).encode()))],
    }
    for said, files in wrong.items():
        answer: Any = operator.submit(PAGE, {"server": "vLLM"}, page=PAGE, files=files)
        assert answer.status_code == 422
        assert said in answer.text
        assert 'id="file-error"' in answer.text
        assert 'value="vLLM"' in answer.text
    with database.reading() as session:
        assert session.scalars(select(BenchmarkRun)).all() == []


def test_a_form_without_a_file_asks_for_one(browser: BrowserMaker) -> None:
    operator = browser("operator")
    parts = (
        f'name="form_token"\r\n\r\n{operator.form_token(PAGE)}',
        'name="file"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n',  # as browsers say that none was chosen
    )
    body = "".join(f"--x\r\nContent-Disposition: form-data; {part}\r\n" for part in parts) + "--x--\r\n"
    headers = {"origin": ORIGIN, "content-type": "multipart/form-data; boundary=x"}
    answer = operator.post(PAGE, content=body, headers=headers)
    assert answer.status_code == 422
    assert "choose at least one file" in answer.text


def test_a_file_that_is_there_already_names_its_run(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    operator.submit(PAGE, page=PAGE, files=[file("vllm", "c2.json")])
    again: Any = operator.submit(PAGE, page=PAGE, files=[file("vllm", "c2.json")])
    assert again.status_code == 409
    with database.reading() as session:
        (run,) = session.scalars(select(BenchmarkRun.id)).all()
    assert f"imported before, as run {run}; nothing was imported" in again.text


def test_a_form_of_another_site_and_one_that_is_too_large_are_refused(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    files = [file("vllm", "c2.json")]
    assert operator.post(PAGE, files=files, headers={"origin": ORIGIN}).status_code == 403
    assert operator.post(PAGE, files=files, headers={"origin": "https://elsewhere"}).status_code == 403
    large: Any = operator.submit(PAGE, page=PAGE, files=[("file", ("x.json", b" " * (MOST_BYTES + 1)))])
    assert large.status_code == 422
    assert "are read at most" in large.text
    larger: Any = operator.submit(PAGE, page=PAGE, files=[("file", ("x.json", b" " * (MOST_BYTES + 2**21)))])
    assert larger.status_code == 413
    with database.reading() as session:
        assert session.scalars(select(BenchmarkRun)).all() == []
