"""Takes the pictures of the console that README and docs/ show: pages in light, dark and narrow.

    make screenshots

A console is started in a home of its own, the demo model is built, deployed, asked and measured in it, and Chromium looks at
every page.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from real_console import RealConsole
from steps import ANSWER_S, BUILD_S, CHROMIUM_ARGUMENTS, ask, deploy, make_first_account, measure, plan_and_build

from roundhouse.build.home import Home
from roundhouse.console.supervisor.folder import deployments_of
from roundhouse.console.supervisor.process import stop

IMAGES = Path(__file__).parent / "images"
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=420, height=800)
PLAN = "/plan?model=shape%3Allama-3.1-8b&weights=int4_awq&device=L40S"
QUESTIONS = ("What is the capital of France?", "Name three rivers of Europe.", "Tell me about lighthouses in two sentences.")


def main() -> int:
    """Take them all; what was there before is replaced."""
    binary = shutil.which("chromium")
    if binary is None:
        print("there is no chromium on PATH", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = Home(Path(folder) / "roundhouse")
        browser = playwright.chromium.launch(executable_path=binary, args=CHROMIUM_ARGUMENTS)
        try:
            with RealConsole(home.path) as console:
                _tour(console, browser)
        finally:
            browser.close()
            for each in deployments_of(home):
                stop(each, drain_s=0)
    return 0


def _tour(console: RealConsole, browser: Browser) -> None:
    page = browser.new_page(viewport=WIDE)
    make_first_account(console, page)
    _take(page, "first-run")
    plan_and_build(page)
    build = page.url
    expect(page.locator("#page-chip")).to_have_text("succeeded", timeout=BUILD_S * 1000)
    page.get_by_role("link", name="Open the engine").click()
    engine = page.url
    deploy(page, "demo")
    deployment = page.url
    page.get_by_role("link", name="Open in playground").click()
    page.get_by_label("Temperature").fill("0")
    for number, question in enumerate(QUESTIONS, 1):
        ask(page, question)
        expect(page.locator("[data-answer] [data-facts]:not([hidden])")).to_have_count(number, timeout=ANSWER_S * 1000)
    _take(page, "playground")
    runs = [measure(page, engine, guard) for guard in ("tags", "off")]
    chosen = "&".join(f"run={run.rpartition('/')[2]}" for run in runs)
    for name, address in (
        ("benchmark", runs[0]),
        ("compare", f"{console.url}/benchmarks/compare?{chosen}"),
        ("deployment", deployment),
        ("home", console.url),
        ("plan", console.url + PLAN),
        ("build", build),
        ("engine", engine),
        ("integrity", f"{console.url}/integrity"),
    ):
        page.goto(address)
        _take(page, name)


def _take(page: Page, name: str) -> None:
    """The top of a page, three times."""
    for look, scheme, size in (("light", "light", WIDE), ("dark", "dark", WIDE), ("narrow", "light", NARROW)):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_load_state("load")
        page.wait_for_timeout(1500)  # charts draw, fragments arrive
        page.screenshot(path=IMAGES / f"console-{name}-{look}.png")
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    sys.exit(main())
