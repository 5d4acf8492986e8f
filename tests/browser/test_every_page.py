"""Every page that there is, in Chromium: for who sees or types otherwise, on small screens, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from addresses import addresses_of, page_at, routes_for_browsers
from everything import RUNS_BESIDE, Everything, empty_console, everything
from focusing import lost_by_refreshing
from inspecting import problems_of
from listening import complaints_of
from offered import Offered
from playwright.sync_api import Browser, BrowserContext, Page, expect

ROUTES = routes_for_browsers()
ALSO = {
    "/benchmarks": [
        "?text=nobody-knows",
        "?size=2&page=9",
        "?columns=state,when,model,weights,workload,hardware,host,driver,most,alone,ttft,prefill,points,failed,noisy,tags,note",
    ],
    "/benchmarks/delete": ["?run=b00000000000&run=b00000000001"],
    "/benchmarks/new": ["?again=b00000000000", "?deployment=00000001", "?url=http://gpu:8000/v1"],
    "/evaluations": ["?gate=failed", "?text=nobody-knows"],
    "/evaluations/new": ["?engine=0123456789abcdef&against=abababababababab"],
    "/benchmarks/compare": [
        f"?run={RUNS_BESIDE:012x}&run={RUNS_BESIDE + 10:012x}&run={RUNS_BESIDE + 20:012x}&at=8&all=1",
        f"?run={RUNS_BESIDE:012x}&run={RUNS_BESIDE + 90:012x}&run=gone&run=c0000",
        "?" + "&".join(f"run={RUNS_BESIDE + 10 * kind + day:012x}" for kind in range(3) for day in range(3)),
    ],
    "/benchmarks/rows": ["?at=1&price=2.5&sort=accuracy", "?model=nobody-knows"],
    "/benchmarks/trends": ["?regressed=1", "?model=nobody-knows", "?range=30d"],
    "/builds": ["?kind=all", "?text=nobody-knows", "?size=2&page=3"],
    "/builds/new": ["?job=1", "?model=shape:kimi-k2&target=torch"],
    "/deployments": ["?state=ended", "?text=nobody-knows"],
    "/deployments/new": ["?like=dddddddd", "?engine=feedfacefeedface"],
    "/engines": ["?text=nobody-knows", "?size=2"],
    "/integrity": ["?kind=content"],
    "/login": ["?next=/engines"],
    "/plan": ["?model=shape:qwen3-8b", "?model=shape:kimi-k2&device=h200", "?model=nothing-like-it"],
    "/playground": ["?with=00000001&beside=dddddddd", "?with=nobody"],
    "/": ["nothing-like-it"],
}
"""Addresses that are worth a look beside the usual ones, by route; what is `nothing-like-it` is refused."""

SENT: list[tuple[str, dict[str, str], str]] = [
    ("/login", {"name": "nobody", "password": "nothing"}, "Log in"),
    ("/account", {"name": "a program"}, "Make a token"),
    ("/account", {"old": "wrong", "password": "too short", "again": "too short"}, "Change password"),
    ("/users", {"name": "two words", "password": "too short"}, "Add"),
    ("/users/victim", {"password": "too short"}, "Set password"),
    ("/settings", {"gpu_hour_price": "much"}, "Change"),
    ("/settings", {"gpu_hour_price": "2.5"}, "Change"),
    ("/builds/new", {"recipe": "model: ["}, "Plan"),
    ("/builds/new", {"recipe": "model: shape:kimi-k2\ntarget: torch"}, "Plan"),
    ("/deployments/new", {"name": "", "openai": "9000", "http": "9000"}, "Deploy"),
    ("/deployments/dddddddd", {}, "Show the API key"),
    ("/integrity/drills/new", {"seed": "-5"}, "Start the drill"),
    ("/benchmarks", {}, "JSON, everything"),
    ("/benchmarks/import", {"server": "vLLM on 8 GPUs"}, "Import"),
    ("/benchmarks/new", {"concurrencies": "many", "input_tokens": "0", "prefix_tokens": "-1"}, "Measure it"),
    ("/benchmarks/b00000000001", {"tags": "a b"}, "Keep the tags"),
    ("/evaluations/new", {"limit": "few", "gate_points": "-1"}, "Evaluate it"),
]
"""What is typed into a page, and the button that leads to another one: mostly to the same with what is wrong."""
OF_VIEWERS = ("/login", "/logout", "/account/", "/playground", "/benchmarks/columns")
"""What everybody may do: come, leave, and change what is one's own."""
_SENDS_NOTHING = """forms => forms.filter(form => {
  const fields = [...form.elements].filter(each => each.type !== "hidden" && !each.disabled);
  return fields.length && !fields.some(each => each.type === "submit" && !each.hidden);
}).map(form => form.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    with everything(tmp_path_factory.mktemp("a console with everything")) as console:
        yield console


@pytest.fixture(scope="module")
def pages(console: Everything) -> dict[str, dict[str, str]]:
    """The addresses of each route's pages, and what is there."""
    with console.client("admin") as asking:
        return {
            route: {each: page for each in addresses(console, route) if (page := page_at(asking, each))} for route in ROUTES
        }


@pytest.fixture(scope="module")
def window(console: Everything, chromium: Browser) -> Iterator[BrowserContext]:
    """An admin's."""
    with console.browser(chromium, "admin", viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as context:
        yield context


@pytest.fixture
def tab(window: BrowserContext) -> Iterator[Page]:
    with window.new_page() as page:
        yield page


@pytest.fixture(scope="module")
def without_scripts(console: Everything, chromium: Browser) -> Iterator[Page]:
    with console.browser(chromium, "admin", java_script_enabled=False) as context:
        yield context.new_page()


def addresses(console: Everything, route: str) -> list[str]:
    """Of a route's pages."""
    more = [f"{route}{each}" for each in ALSO.get(route, ())]
    return [*addresses_of(route, console.samples), *more]


def links_to_parts(page: Page) -> list[str]:
    """Where the tabs of a page lead; those of one page of a route are enough."""
    return [str(each) for each in page.locator(".tabs a").evaluate_all("links => links.map(each => each.getAttribute('href'))")]


@pytest.mark.parametrize("route", ROUTES)
def test_everybody_can_use_a_page(console: Everything, pages: dict[str, dict[str, str]], tab: Page, route: str) -> None:
    to_visit = list(pages[route])
    complaints, problems = complaints_of(tab), list[str]()
    for address in to_visit:  # grows
        answer = tab.goto(f"{console.url}{address}")
        assert answer is not None
        if answer.status not in ((403, 404, 422) if "nothing-like-it" in address or route == "/setup" else (200,)):
            problems.append(f"{address}: {answer.status}")
        problems += [f"{address}: {each}" for each in problems_of(tab, complaints, whole=address == to_visit[0])]
        if address == to_visit[0] and "{" in route:
            to_visit += [each for each in links_to_parts(tab) if each not in to_visit and urlsplit(each).path == to_visit[0]]
    assert problems == [], "\n".join(problems)


def test_what_refreshes_itself_takes_nothing_away(console: Everything, pages: dict[str, dict[str, str]], tab: Page) -> None:
    lost: list[str] = []
    tab.set_viewport_size({"width": 480, "height": 800})  # tables scroll
    moving = [each for found in pages.values() for each, text in found.items() if 'hx-trigger="every' in text]
    assert len(moving) > 10
    for address in moving:
        tab.goto(f"{console.url}{address}")
        lost += [f"{address}: {each}" for each in lost_by_refreshing(tab)]
    assert lost == [], "\n".join(lost)


@pytest.mark.parametrize("route", ROUTES)
def test_a_page_works_without_scripts(
    console: Everything, pages: dict[str, dict[str, str]], without_scripts: Page, route: str
) -> None:
    page = without_scripts
    for address in pages[route]:
        answer = page.goto(f"{console.url}{address}")
        assert answer is not None
        assert answer.status < 500
        heading = page.locator("h1").inner_text().strip()
        assert heading
        assert page.locator("main").inner_text().strip() != heading, f"{address} has no content"
        assert page.locator("main form").evaluate_all(_SENDS_NOTHING) == [], address


def test_pages_are_told_from_what_they_load(pages: dict[str, dict[str, str]]) -> None:
    shown = {route for route, addresses in pages.items() if addresses}
    assert {"/", "/plan", "/builds/{job_id}", "/engines/{engine_id}", "/deployments/new", "/integrity/drills/{job_id}",
            "/users/{name}", "/audit/{entry_id}", "/workers/{worker_id}", "/account", "/login"} <= shown  # fmt: skip
    assert {"/builds/{job_id}/live", "/builds/{job_id}/log/stream", "/builds/{job_id}/log.txt", "/healthz"}.isdisjoint(shown)


@pytest.mark.parametrize(("address", "typed", "button"), SENT, ids=[f"{each[0]} {each[2]}" for each in SENT])
def test_everybody_can_use_what_a_form_leads_to(
    console: Everything, tab: Page, address: str, typed: dict[str, str], button: str
) -> None:
    complaints = complaints_of(tab)
    tab.goto(f"{console.url}{address}")
    tab.locator("main form").evaluate_all("forms => forms.forEach(form => { form.noValidate = true; })")
    tab.locator("main .disclosure").evaluate_all("all => all.forEach(each => { each.open = true; })")
    for name, value in typed.items():
        tab.locator(f"main [name={name}]:not([type=hidden])").first.evaluate(
            "(field, value) => { field.value = value; }", value
        )
    pressed = tab.get_by_role("button", name=button, exact=True, include_hidden=True)
    tab.locator("main details[data-menu]").filter(has=pressed).evaluate_all("all => all.forEach(each => { each.open = true; })")
    with tab.expect_navigation():
        tab.locator("main").get_by_role("button", name=button, exact=True).click()
    assert tab.locator("[role=alert]:visible, .notice, .flash, .field-error:visible, .copy-block").count()
    assert problems_of(tab, complaints) == []


def test_everybody_can_use_an_answer_that_did_not_come(console: Everything, tab: Page) -> None:
    complaints = complaints_of(tab)
    tab.goto(f"{console.url}/playground?with=00000001&beside=dddddddd")
    tab.get_by_role("textbox", name="Prompt", exact=True).fill("What is the capital of France?")
    tab.get_by_role("button", name="Send").click()
    expect(tab.locator("[data-problem]:visible")).to_have_count(2)
    assert problems_of(tab, complaints) == []


def test_everybody_can_make_the_first_account_and_is_told_no(
    console: Everything, chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        empty_console(tmp_path_factory.mktemp("an empty console")) as (url, secret),
        chromium.new_context(reduced_motion="reduce") as context,
        context.new_page() as page,
    ):
        complaints = complaints_of(page)
        for address, status in ((f"/setup?token={secret}", 200), ("/setup?token=wrong", 403), ("/login", 200)):
            answer = page.goto(f"{url}{address}")
            assert answer is not None
            assert answer.status == status
            assert problems_of(page, complaints) == []
    with console.browser(chromium, "viewer", reduced_motion="reduce") as context, context.new_page() as page:
        complaints = complaints_of(page)
        page.goto(f"{console.url}/users")
        expect(page.get_by_text("403")).to_be_visible()
        assert problems_of(page, complaints) == []


def test_a_viewer_is_offered_nothing_that_is_refused(console: Everything) -> None:
    sent_to: dict[str, str] = {}
    links: dict[str, str] = {}
    with console.client("viewer") as asking:
        for address in (each for route in ROUTES for each in addresses(console, route)):
            offered = Offered(page_at(asking, address))
            sent_to |= dict.fromkeys(offered.sent_to, address)
            links |= dict.fromkeys(offered.links, address)
        refused = [f"{link} on {page}" for link, page in links.items() if _status(asking, link) == 403]
    assert [f"{action} on {page}" for action, page in sent_to.items() if not action.startswith(OF_VIEWERS)] == []
    assert set(sent_to) >= {"/login", "/logout", "/account/tokens"}
    assert len(links) > 20
    assert refused == []


def _status(client: httpx.Client, path: str) -> int:
    with client.stream("GET", path) as answer:
        return answer.status_code
