"""The list of runs on a laptop and on a telephone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from everything import Everything, everything
from playwright.sync_api import Browser, Page, expect


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everything]:
    with everything(tmp_path_factory.mktemp("a console with runs")) as console:
        yield console


@pytest.fixture
def page(console: Everything, chromium: Browser) -> Iterator[Page]:
    options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
    with console.browser(chromium, "operator", **options) as context, context.new_page() as page:
        page.goto(f"{console.url}/benchmarks")
        yield page


def test_the_usual_columns_fit_a_laptop(page: Page) -> None:
    frame = page.get_by_role("region", name="Benchmark runs")
    expect(frame).to_be_visible()
    assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0


def test_on_a_telephone_the_run_stays_in_sight_while_its_numbers_are_scrolled_through(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    frame = page.get_by_role("region", name="Benchmark runs")
    frame.evaluate("frame => { frame.scrollLeft = 400; }")
    name = frame.get_by_role("rowheader").first
    expect(name.get_by_role("link").first).to_be_in_viewport(ratio=0.9)
    box, around = name.bounding_box(), frame.bounding_box()
    assert box is not None
    assert around is not None
    assert box["width"] < around["width"] / 2, "numbers have room beside it"


def test_exports_are_chosen_in_a_menu(page: Page) -> None:
    page.get_by_role("checkbox").nth(0).check()
    page.locator("summary").filter(has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV, a row a point").click()
    assert download.value.suggested_filename.endswith(".csv")


def test_files_that_are_too_large_are_refused_before_they_are_sent(page: Page, console: Everything) -> None:
    page.goto(f"{console.url}/benchmarks/import")
    field = page.get_by_label("Files")
    field.evaluate("field => { field.dataset.mostBytes = 1000; }")
    field.set_input_files({"name": "large.json", "mimeType": "application/json", "buffer": b" " * 2000})
    assert not field.evaluate("field => field.checkValidity()")
    field.set_input_files({"name": "small.json", "mimeType": "application/json", "buffer": b" " * 900})
    assert field.evaluate("field => field.checkValidity()")


def test_results_are_imported_with_a_file(page: Page, console: Everything) -> None:
    page.get_by_role("link", name="Import results").click()
    run = "b00000000002"
    exported = page.request.get(f"{console.url}/benchmarks/export?run={run}").body()
    page.get_by_label("Files").set_input_files({"name": "theirs.json", "mimeType": "application/json", "buffer": exported})
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert")).to_contain_text(f"this was imported before, as run {run}; nothing was imported")
    another = exported.replace(run.encode(), b"babababababa")
    page.get_by_label("Files").set_input_files({"name": "theirs.json", "mimeType": "application/json", "buffer": another})
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("It was imported.")).to_be_visible()
    expect(page.get_by_text("imported from theirs.json")).to_be_visible()
