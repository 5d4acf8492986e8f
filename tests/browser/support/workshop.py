"""A console with a worker, people of every role, and a tiny model: for tests that build and leave nothing under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from playwright.sync_api import Browser, Page, expect
from real_console import RealConsole
from sqlalchemy import select
from steps import PASSWORD

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.access.logins import Logins
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.models import Job, Role, User

__all__ = ["Workshop", "watched", "workshop"]


BUILD_MS = 240_000
"""How long a build of the tiny model may take on a busy machine; it is never waited for in full."""


class Workshop:
    """The console, and its database as another process sees it."""

    def __init__(self, console: RealConsole, database: Database, home: Home, model: Path) -> None:
        self.console = console
        self.database = database
        self.home = home
        self.model = model

    @property
    def url(self) -> str:
        return self.console.url

    def recipe(self, name: str, *, samples: int = 4) -> str:
        """Of a build that no other test asks for; it takes as much longer as there are samples."""
        seed = sum(name.encode())
        return (
            f"model: {self.model}\nname: {name}\nseed: {seed}\nmax_batch_size: 8\nmax_seq_len: 256\n"
            f"calibration:\n  samples: {samples}\n"
        )

    @contextmanager
    def window(self, chromium: Browser, role: Role, **options: Any) -> Iterator[Page]:
        """A tab of somebody who is logged in; each window is another person's."""
        with self.database.writing() as session:
            user = session.scalars(select(User).where(User.name == f"the-{role}")).one()
            login = Logins().begin(session, user, address="127.0.0.1", browser="")
        with chromium.new_context(viewport={"width": 1280, "height": 900}, **options) as context:
            context.add_cookies([{"name": "roundhouse_login", "value": login, "url": self.url}])
            yield context.new_page()

    def fill(self, page: Page, recipe: str) -> None:
        """Open the page for a new build, and type a recipe until it can be queued."""
        page.goto(f"{self.url}/builds/new")
        page.get_by_label("Recipe").fill(recipe)
        expect(page.locator("#answer")).to_contain_text("LlamaForCausalLM, 2 layers")

    def queue(self, page: Page, name: str, **keys: int) -> int:
        """Ask for a build; the page is its own then. Returns the job's number."""
        self.fill(page, self.recipe(name, **keys))
        page.get_by_role("button", name="Queue this build").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Build {name}")
        return int(page.url.rsplit("/", 1)[1])

    def jobs(self, name: str) -> list[Job]:
        """Every job for a build with this name."""
        with self.database.reading() as session:
            return list(session.scalars(select(Job).where(Job.subject == name)))


@contextmanager
def workshop(folder: Path, model: Path, *options: str) -> Iterator[Workshop]:
    """Start it in a folder of its own."""
    home = Home(folder / "a home")
    with RealConsole(home.path, "--models", str(model.parent), *options) as console:
        database = Database(database_url(None, home))
        password = hash_password(PASSWORD)
        with database.writing() as session:
            for role in get_args(Role):
                add_account(session, f"the-{role}", password, role)
        yield Workshop(console, database, home, model)
        database.close()


def watched(page: Page) -> list[tuple[int, str]]:
    """The numbers and lines of the log that a page shows."""
    return [
        (int(number), text)
        for number, text in page.locator("[role=log] .log-line").evaluate_all(
            "lines => lines.map(line => [...line.children].map(each => each.textContent))"
        )
    ]
