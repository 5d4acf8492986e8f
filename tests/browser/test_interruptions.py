"""What people see when a worker or the console is killed in the middle of a job."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, expect
from populated import add_worker
from real_console import wait_until
from sqlalchemy import select
from workshop import BUILD_MS, Workshop, watched, workshop

from roundhouse.console.jobs import NewJob, Worklist, enqueue
from roundhouse.console.models import Worker


def kill_worker(of: Workshop, job_id: int) -> None:
    """The process that has a job now, as abruptly as can be."""
    with of.database.reading() as session:
        pid = session.scalars(select(Worker.pid).order_by(Worker.started_at.desc())).first()
    assert pid is not None
    worker = psutil.Process(pid)
    children = worker.children(recursive=True)
    assert children, f"nothing is done for job {job_id}"
    worker.kill()
    wait_until(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children), "its end")


def test_a_build_whose_worker_is_killed_is_done_by_the_next(shared_workshop: Workshop, chromium: Browser) -> None:
    with shared_workshop.window(chromium, "operator") as page:
        job_id = shared_workshop.queue(page, "survivor")
        expect(page.get_by_role("log")).to_contain_text("load:")
        first = watched(page)
        kill_worker(shared_workshop, job_id)
        # Its lease runs out, the worker that the console has started meanwhile takes it, and the page comes to that by itself.
        expect(page.locator("#job-live")).to_contain_text("attempt 2 of 2")
        attempts = page.get_by_role("navigation", name="Attempts")
        expect(attempts.get_by_role("link", name="Attempt 2")).to_have_attribute("aria-current", "page")
        expect(page.locator("#page-chip")).to_have_text("succeeded", timeout=BUILD_MS)
        expect(page.get_by_role("log")).to_contain_text("publish:")
        attempts.get_by_role("link", name="Attempt 1").click()
        expect(page.get_by_role("log")).not_to_contain_text("publish:")
        assert watched(page)[: len(first)] == first


def test_a_page_outlives_the_console_and_loses_no_line(chromium: Browser, tmp_path: Path) -> None:
    with workshop(tmp_path, tmp_path / "no model", "--no-worker") as of, of.window(chromium, "viewer") as page:
        worklist = Worklist(of.database)
        with of.database.writing() as session:
            job_id = enqueue(session, NewJob("build", "by hand", {"recipe": {"model": "demo:smollm2"}}, "the-operator")).id
        claim = worklist.claim(add_worker(of.database))
        assert claim is not None

        def say(first: int, last: int) -> None:
            worklist.log(claim, first, [f"line {number}" for number in range(first, last + 1)])

        say(1, 3)
        page.goto(f"{of.url}/builds/{job_id}")
        say(4, 6)
        _shows(page, 6)
        of.console.stop(signal.SIGKILL)
        expect(page.locator("[data-log-state]")).to_contain_text("connection lost")
        say(7, 9)  # workers go on without a console
        of.console.start()
        _shows(page, 9)
        say(10, 12)
        _shows(page, 12)
        expect(page.locator("[data-log-state]")).to_have_text("live")
        worklist.end(claim, "failed", error="it went wrong")
        expect(page.locator("[data-log-state]")).to_have_text("ended")
        expect(page.locator("#page-chip")).to_have_text("failed")
        page.reload()
        _shows(page, 12)


def _shows(page: Page, last: int) -> None:
    """The page comes to this line by itself, with each line before it there once and in order."""
    log = page.get_by_role("log")
    expect(log).to_contain_text(re.compile(rf"line {last}$"))
    assert watched(page) == [(number, f"line {number}") for number in range(1, last + 1)]
