"""Every page that there is, in Chromium: for who sees or types otherwise, on small screens, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from addresses import addresses_of, answers_with_a_page, routes_for_browsers
from everything import Everything, empty_console, everything
from inspecting import problems_of
from listening import complaints_of
from playwright.sync_api import Browser, BrowserContext, Page

ROUTES = routes_for_browsers()
ALSO = {
    "/builds": ["?state=running", "?kind=all", "?text=nothing-like-it", "?size=2&page=3"],
    "/builds/new": ["?job=1", "?model=shape:kimi-k2&target=torch"],
    "/deployments": ["?state=ended", "?text=nothing-like-it"],
    "/deployments/new": ["?like=dddddddd"],
    "/engines": ["?text=nothing-like-it", "?size=2"],
    "/integrity": ["?kind=content"],
    "/login": ["?next=/engines"],
    "/plan": ["?model=shape:qwen3-8b", "?model=shape:kimi-k2&device=h200", "?model=nothing-like-it"],
    "/playground": ["?with=00000001&beside=dddddddd", "?with=gone"],
    "/": ["nothing-like-it"],
}
"""Addresses that are worth a look beside the usual ones, by route."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    with everything(tmp_path_factory.mktemp("a console with everything")) as console:
        yield console


@pytest.fixture(scope="module")
def asking(console: Everything) -> Iterator[httpx.Client]:
    """An admin's program, which only looks at what kind of answer comes."""
    with httpx.Client(base_url=console.url, cookies={"roundhouse_login": console.cookie_of("admin")}) as client:
        yield client


@pytest.fixture(scope="module")
def logged_in(console: Everything, chromium: Browser) -> Iterator[BrowserContext]:
    """An admin's browser. Scripts that fail are heard by the tests."""
    with chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as context:
        context.add_cookies([{"name": "roundhouse_login", "value": console.cookie_of("admin"), "url": console.url}])
        yield context


@pytest.fixture
def tab(logged_in: BrowserContext) -> Iterator[Page]:
    with logged_in.new_page() as page:
        yield page


@pytest.fixture(scope="module")
def without_scripts(console: Everything, chromium: Browser) -> Iterator[Page]:
    with chromium.new_context(java_script_enabled=False, viewport={"width": 480, "height": 800}) as context:
        context.add_cookies([{"name": "roundhouse_login", "value": console.cookie_of("admin"), "url": console.url}])
        yield context.new_page()


def addresses(console: Everything, route: str) -> list[str]:
    """Of a route's pages."""
    more = [f"{route}{each}" for each in ALSO.get(route, ())]
    return [*addresses_of(route, console.samples), *more]


def links_to_parts(page: Page) -> list[str]:
    """Where the tabs of a page lead; those of one page of a route are enough."""
    return [str(each) for each in page.locator(".tabs a").evaluate_all("links => links.map(each => each.getAttribute('href'))")]


@pytest.mark.parametrize("route", ROUTES)
def test_everybody_can_use_a_page(console: Everything, asking: httpx.Client, tab: Page, route: str) -> None:
    to_visit = [each for each in addresses(console, route) if answers_with_a_page(asking, each)]
    complaints, problems = complaints_of(tab), list[str]()
    for address in to_visit:  # grows
        tab.goto(f"{console.url}{address}")
        problems += [f"{address}: {each}" for each in problems_of(tab, complaints)]
        if urlsplit(address).path == to_visit[0]:
            to_visit += [each for each in links_to_parts(tab) if each not in to_visit and urlsplit(each).path == to_visit[0]]
    assert problems == [], "\n".join(problems)


@pytest.mark.parametrize("route", ROUTES)
def test_a_page_works_without_scripts(console: Everything, asking: httpx.Client, without_scripts: Page, route: str) -> None:
    page = without_scripts
    for address in addresses(console, route):
        if not answers_with_a_page(asking, address):
            continue
        page.goto(f"{console.url}{address}")
        assert page.locator("h1").inner_text().strip()
        assert page.locator("main").inner_text().strip() != page.locator("h1").inner_text().strip(), address
        for form in page.locator("main form").all():
            fields = form.locator("input:not([type=hidden]):not([disabled]), select, textarea")
            sends = form.locator("button[type=submit], button:not([type]), input[type=submit]").count()
            named = form.get_attribute("id")
            sends += page.locator(f"button[type=submit][form={named}]").count() if named else 0
            assert sends or not fields.count(), f"{address}: {form.inner_text()}"


def test_pages_are_told_from_what_they_load(console: Everything, asking: httpx.Client) -> None:
    pages = {route for route in ROUTES if answers_with_a_page(asking, addresses_of(route, console.samples)[0])}
    assert {"/", "/plan", "/builds/{job_id}", "/engines/{engine_id}", "/deployments/new", "/integrity/drills/{job_id}",
            "/users/{name}", "/audit/{entry_id}", "/workers/{worker_id}", "/account", "/login"} <= pages  # fmt: skip
    assert {"/builds/{job_id}/live", "/builds/{job_id}/log/stream", "/builds/{job_id}/log.txt", "/healthz"}.isdisjoint(pages)
