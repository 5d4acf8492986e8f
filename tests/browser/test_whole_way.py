"""The main job in a browser, against the real thing: from an empty console to answers, and to the end of it."""

from __future__ import annotations

import re

import psutil
import pytest
from playwright.sync_api import Page, expect
from real_console import RealConsole, wait_until
from steps import ANSWER_S, BUILD_S, DEPLOY_S, ask, deploy, plan_and_build


@pytest.mark.timeout(1800)
def test_from_nothing_to_an_answer_and_back(console: RealConsole, admin: Page) -> None:
    page = admin
    plan_and_build(page)
    log = page.get_by_role("log")
    expect(log).to_contain_text("import:")  # it comes by itself
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
    expect(page.locator("[data-answer]").last.locator("[data-fact=reason]")).to_have_text("stopped by you")

    page.get_by_role("link", name="Deployments", exact=False).first.click()
    page.get_by_role("row", name="demo").get_by_role("link", name="demo", exact=True).click()
    running = page.locator("[data-live-value=running]")
    expect(running).to_have_text("0", timeout=ANSWER_S * 1000)  # the stopped request is gone from the batch
    page.get_by_text("Unload…").click()
    page.get_by_role("button", name="Unload", exact=True).click()
    expect(page.locator("#page-chip")).to_have_text("stopped", timeout=DEPLOY_S * 1000)
    wait_until(lambda: not any(_serves(each, console) for each in psutil.process_iter(["cmdline"])), "the end of all processes")

    page.get_by_role("link", name="Home", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")


def _serves(process: psutil.Process, console: RealConsole) -> bool:
    """Whether a process serves something of this console's home."""
    words = " ".join(process.info["cmdline"] or [])
    return str(console.home) in words and ("supervisor" in words or "tritonserver" in words or "process.main" in words)
