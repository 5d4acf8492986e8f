"""What people do in the console, step by step: for tests, and for the pictures in docs/."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from real_console import RealConsole

__all__ = [
    "ANSWER_S",
    "BENCHMARK_S",
    "BUILD_S",
    "CHROMIUM_ARGUMENTS",
    "DEPLOY_S",
    "PASSWORD",
    "PRESS_MS",
    "ask",
    "deploy",
    "make_first_account",
    "measure",
    "plan_and_build",
]

PASSWORD = "correct horse battery"
BUILD_S, DEPLOY_S, ANSWER_S, BENCHMARK_S = 600.0, 300.0, 120.0, 900.0
"""How long each may take on a busy machine; none is ever waited for in full."""
PRESS_MS = 150.0
"""How long people press a button: what is under it must stay."""
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def make_first_account(console: RealConsole, page: Page) -> None:
    """From the link in the terminal to the home page."""
    page.goto(console.first_link)
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, again").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    page.wait_for_url(f"{console.url}/")


def plan_and_build(page: Page) -> None:
    """From any page to the page of a build of the demo model."""
    page.get_by_role("link", name="Plan", exact=True).click()
    page.get_by_label("Model", exact=True).press_sequentially("demo:smollm2")
    page.get_by_role("link", name="Build this").click(delay=PRESS_MS)
    page.get_by_role("button", name="Queue this build").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("smollm2", re.IGNORECASE))


def deploy(page: Page, name: str) -> None:
    """From an engine's page to the page of its deployment, ready."""
    page.get_by_role("link", name="Deploy", exact=True).click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("KV cache").select_option("kv_cache_tokens")
    page.get_by_label("How much").fill("4096")
    page.get_by_role("button", name="Deploy").click(delay=PRESS_MS)
    expect(page.locator("#page-chip")).to_have_text("ready", timeout=DEPLOY_S * 1000)


def ask(page: Page, prompt: str) -> None:
    """Send a prompt in the playground."""
    field = page.get_by_role("textbox", name="Prompt", exact=True)
    field.fill(prompt)
    field.press("Enter")


def measure(page: Page, engine: str, guard: str) -> str:
    """From an engine's page to the page of a short run of its bare loop. Returns its address."""
    page.goto(engine)
    page.goto(page.url.replace("/engines/", "/benchmarks/new?engine="))
    page.get_by_label("the bare engine loop").check()
    for field, value in (
        ("input_tokens", "64"),
        ("output_tokens", "32"),
        ("concurrencies", "1, 2, 4, 8"),
        ("prefill_lengths", "64, 256"),
        ("requests_each", "2"),
        ("least_requests", "4"),
    ):
        page.locator(f"#{field}").fill(value)
    page.get_by_label("Page guard").select_option(guard)
    page.get_by_role("button", name="Measure it").click(delay=PRESS_MS)
    expect(page.locator("#page-chip")).to_have_text("succeeded", timeout=BENCHMARK_S * 1000)
    page.locator("#job-actions").get_by_role("link", name="Open what was measured").click()
    expect(page.get_by_role("heading", name="Reproduce")).to_be_visible()
    return page.url
