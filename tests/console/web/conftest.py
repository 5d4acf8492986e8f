"""A console as its users meet it: over HTTP, logged in as somebody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import ORIGIN, PASSWORD, Browser, BrowserMaker

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.database.database import Database
from roundhouse.console.models import Role
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

ON_SQLITE_ONLY = {
    "test_builds_api",
    "test_builds_pages",
    "test_compare",
    "test_benchmarks",
    "test_benchmark_import",
    "test_evaluations",
    "test_deployments",
    "test_engines",
    "test_guards",
    "test_home",
    "test_https",
    "test_login",
    "test_plan_page",
    "test_plans_measured",
    "test_playground",
    "test_published",
    "test_rows",
    "test_trends",
}
"""Modules about what is around the statements; these have tests of their own, on both databases."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the other database out where nothing depends on it."""
    items[:] = [item for item in items if not (_module(item) in ON_SQLITE_ONLY and _database(item) == "postgresql")]


def _module(item: pytest.Item) -> str:
    return item.path.stem if item.path.parent == Path(__file__).parent else ""


def _database(item: pytest.Item) -> object:
    return item.callspec.params.get("database") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None


@pytest.fixture
def browser(database: Database, tmp_path: Path) -> Iterator[BrowserMaker]:
    """Makes browsers; each has its own cookies. ``browser("operator")`` is logged in as one."""
    settings = ConsoleSettings(home=Home(tmp_path / "home"))
    app = create_app(settings, database)
    opened: list[Browser] = []

    def make(role: Role | None = None, name: str | None = None) -> Browser:
        client = Browser(app, base_url=ORIGIN, raise_server_exceptions=False)
        opened.append(client)
        if role is not None:
            with database.writing() as session:
                add_account(session, name or f"the-{role}", hash_password(PASSWORD), role)
            client.log_in(name or f"the-{role}")
        return client

    yield make
    for client in opened:
        client.close()
