"""The main job in a browser, against the real thing: from an empty console to answers, and to the end of it."""

from __future__ import annotations

import re

import psutil
import pytest
from playwright.sync_api import Page, expect
from real_console import PATIENCE_S, RealConsole

BUILD_S, DEPLOY_S, ANSWER_S = 600.0, 300.0, 120.0
"""How long each may take on a busy machine; none is ever waited for in full."""


def plan_and_build(page: Page) -> None:
    """From the home page to the page of a build of the demo model."""
    page.get_by_role("link", name="Plan", exact=True).click()
    page.get_by_label("Model", exact=True).press_sequentially("demo:smollm2")
    page.get_by_role("link", name="Build this").click()
    page.get_by_role("button", name="Queue this build").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("smollm2", re.IGNORECASE))


def deploy(page: Page, name: str) -> None:
    """From an engine's page to its deployment, ready."""
    page.get_by_role("link", name="Deploy", exact=True).click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("KV cache").select_option("kv_cache_tokens")
    page.get_by_label("How much").fill("4096")
    page.get_by_role("button", name="Deploy").click()
    expect(page.locator("#page-chip")).to_have_text("ready", timeout=DEPLOY_S * 1000)


def ask(page: Page, prompt: str) -> None:
    """Send a prompt in the playground."""
    field = page.get_by_role("textbox", name="Prompt", exact=True)
    field.fill(prompt)
    field.press("Enter")


@pytest.mark.timeout(1800)
def test_from_nothing_to_an_answer_and_back(console: RealConsole, admin: Page) -> None:
    page = admin
    plan_and_build(page)
    log = page.get_by_role("log")
    expect(log).to_contain_text("import:", timeout=PATIENCE_S * 1000)  # it comes by itself
    expect(page.locator("#page-chip")).to_have_text("succeeded", timeout=BUILD_S * 1000)
    expect(log).to_contain_text("publish:")

    page.get_by_role("link", name="Open the engine").click()
    expect(page.locator("#page-chip")).to_have_text("present")
    page.get_by_role("link", name="Modules").click()
    expect(page.get_by_role("main")).to_contain_text("int4_awq")
    page.get_by_role("link", name="Overview").click()

    deploy(page, "demo")
    page.get_by_role("link", name="Open in playground").click()
    page.get_by_label("Temperature").fill("0")
    ask(page, "What is the capital of France?")
    answer = page.locator("[data-answer]").last
    expect(answer.locator("[data-fact=reason]")).to_have_text("ended by itself", timeout=ANSWER_S * 1000)
    expect(answer.locator("[data-text]")).to_contain_text("Paris")
    expect(answer.locator("[data-fact=tokens]")).to_have_text(re.compile(r"\d+"))

    ask(page, "Write a very long story about a lighthouse keeper and his many guests.")
    expect(page.locator("[data-answer]").last.locator("[data-text]")).not_to_be_empty(timeout=ANSWER_S * 1000)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-answer]").last.locator("[data-fact=reason]")).to_have_text("stopped")

    page.get_by_role("link", name="Deployments", exact=True).click()
    page.get_by_role("link", name="demo", exact=True).first.click()
    stats = page.locator("[data-key=running]")
    expect(stats).to_have_text(re.compile(r"^\s*0"), timeout=ANSWER_S * 1000)  # the stopped request is gone from the batch
    page.get_by_text("Unload", exact=True).click()
    page.get_by_role("button", name="Unload").last.click()
    expect(page.locator("#page-chip")).to_have_text("stopped", timeout=DEPLOY_S * 1000)
    assert [process for process in psutil.process_iter(["cmdline"]) if _serves(process, console)] == []

    page.get_by_role("link", name="Home", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")


def _serves(process: psutil.Process, console: RealConsole) -> bool:
    """Whether a process serves something of this console's home."""
    words = " ".join(process.info["cmdline"] or [])
    return str(console.home) in words and ("supervisor" in words or "tritonserver" in words or "process.main" in words)
