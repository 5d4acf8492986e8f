"""How long the console's pages take at the server, with ten thousand engines, a hundred thousand jobs, two thousand benchmark
runs and a million of their points and samples.

    make bench-console

Pages are asked for in turn, again and again, in process: measured are the application and its database, without a network or
a browser. The first call of a page is told apart: it compiles templates and statements, and tests what is remembered after it.
How much of the time was the processor's is told, too, because other programs may keep it busy; of PostgreSQL that is the
application's part alone. PostgreSQL is measured where ROUNDHOUSE_TEST_POSTGRES names a server. Nothing here passes or fails by
how long something took.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median, quantiles

from browsing import ORIGIN, PASSWORD, Browser
from console_benchmarks import MEASURED, MODELS, REGRESSED, RUNS, run_id
from console_rows import ENGINES, JOBS, fill
from counting import count_queries
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from sqlalchemy import URL, create_engine, text

from roundhouse.build.home import Home
from roundhouse.console.access.accounts import add_account, hash_password
from roundhouse.console.database.database import Database, database_url
from roundhouse.console.database.schema import open_database
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app

POSTGRES = "ROUNDHOUSE_TEST_POSTGRES"
COMPARED = "&".join(f"run={run_id(9 * number)}" for number in range(200))
PAGES = {
    "home": "/",
    "home, its moving part": "/home/live",
    "engines": "/engines",
    "engines, page 150": "/engines?page=150",
    "engines, filtered": "/engines?text=engine-77&weights=fp8",
    "one engine": f"/engines/{5:016x}",
    "builds": "/builds",
    "builds, their moving part": "/builds/table",
    "builds, failed": "/builds?state=failed",
    "builds, page 1,000": "/builds?page=1000",
    "builds, searched": "/builds?text=engine-77",
    "one build": f"/builds/{1000 + JOBS // 2 + 1}",
    "deployments": "/deployments",
    "deployments, ended": "/deployments?state=ended",
    "integrity": "/integrity",
    "drills": "/integrity/drills",
    "benchmarks": "/benchmarks",
    "benchmarks, page 40": "/benchmarks?page=40",
    "benchmarks, searched": "/benchmarks?text=engine-77",
    "one benchmark": f"/benchmarks/{run_id(RUNS // 2)}",
    "compare 2": f"/benchmarks/compare?run={run_id(40)}&run={run_id(80)}",
    "compare 200": f"/benchmarks/compare?{COMPARED}",
    "compare 200, by TTFT p99": f"/benchmarks/compare?{COMPARED}&by=ttft_p99",
    "trends": "/benchmarks/trends",
    "trends, worse": "/benchmarks/trends?regressed=1",
    "trends, one model": f"/benchmarks/trends?model={MODELS[1]}",
    "engines compared": "/benchmarks/rows",
    "published": "/benchmarks/published",
    "workers": "/workers",
    "users": "/users",
    "audit": "/audit",
    "audit, one person": "/audit?who=user-7",
    "API: jobs": "/api/v1/jobs",
    "API: engines": "/api/v1/engines",
    "metrics": "/metrics",
}


_SHOWN = ("median", "processor", "p95", "first", "statements")
"""As columns."""


def main() -> int:
    """Measure on each database, and print a table."""
    given = argparse.ArgumentParser(description="How long pages take at the server, with very many rows.")
    given.add_argument("--repeats", type=int, default=20)
    given.add_argument("--json", type=Path, help="a file for everything that was measured")
    options = given.parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, url in _databases(Path(folder)):
            with url as place:
                found[kind] = _measure(place, Path(folder), options.repeats)
    _show(found)
    if options.json:
        options.json.write_text(
            json.dumps({"engines": ENGINES, "jobs": JOBS, "runs": RUNS, "measured": MEASURED, "ms": found}, indent=2) + "\n"
        )
    return 0


def _databases(folder: Path) -> Iterator[tuple[str, AbstractContextManager[URL]]]:
    yield "SQLite", _sqlite(folder)
    if os.environ.get(POSTGRES):
        yield "PostgreSQL", _postgres(os.environ[POSTGRES])


@contextmanager
def _sqlite(folder: Path) -> Iterator[URL]:
    yield URL.create("sqlite", database=str(folder / "console.sqlite3"))


@contextmanager
def _postgres(server: str) -> Iterator[URL]:
    url, name = database_url(server, Home(Path())), f"bench_{uuid.uuid4().hex}"
    admin = create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield url.set(database=name)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


def _measure(url: URL, folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """By page: milliseconds (of the first call; of the others median, 95th percentile and processor time), and statements."""
    database = Database(url)
    open_database(database)
    home = Home(folder / "home")
    fill(database, home)
    if not database.is_sqlite:  # what PostgreSQL does by itself in time
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    with database.writing() as session:
        add_account(session, "bench", hash_password(PASSWORD), "admin")
    first: dict[str, float] = {}
    seconds: dict[str, list[float]] = {name: [] for name in PAGES}
    processor: dict[str, list[float]] = {name: [] for name in PAGES}
    statements: dict[str, int] = {}
    app = create_app(ConsoleSettings(home=home), database)
    with Browser(app, base_url=ORIGIN) as browser:
        browser.log_in("bench")
        for _ in range(repeats + 1):
            for name, path in PAGES.items():
                with count_queries(database) as seen:
                    began, busy = time.perf_counter(), time.process_time()
                    answer = browser.get(path)
                    took, busy = time.perf_counter() - began, time.process_time() - busy
                if answer.status_code != 200:
                    raise SystemExit(f"{path} answers {answer.status_code}")
                if name == "trends" and f"{REGRESSED} series are worse" not in answer.text:
                    raise SystemExit(f"{path} does not flag {REGRESSED} series")
                if name not in first:
                    first[name] = took
                    continue
                seconds[name].append(took)
                processor[name].append(busy)
                statements[name] = len(seen)
    database.close()
    return {
        name: {
            "first": 1000 * first[name],
            "median": 1000 * median(took),
            "p95": 1000 * quantiles(took, n=20)[-1],
            "processor": 1000 * median(processor[name]),
            "statements": statements[name],
        }
        for name, took in seconds.items()
    }


def _show(found: dict[str, dict[str, dict[str, float]]]) -> None:
    rows = f"{ENGINES:,} engines, {JOBS:,} jobs, {RUNS:,} benchmark runs with {MEASURED:,} points and samples"
    table = Table(title=f"{rows}: milliseconds at the server", box=SIMPLE)
    table.add_column("page")
    for kind in found:
        for column in (f"{kind}, median", "of it processor", "p95", "first", "statements"):
            table.add_column(column, justify="right")
    for name in PAGES:
        cells = [f"{found[kind][name][key]:.0f}" for kind in found for key in _SHOWN]
        table.add_row(name, *cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    sys.exit(main())
