"""`visit_everything.py FILE HOME`: a web process that answers every page there is, and then says what it has loaded."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from all_routes import named, routes_of
from everybody import visit
from populated import populate
from sqlalchemy import URL, select

from roundhouse.build.home import Home
from roundhouse.console.access.logins import Logins
from roundhouse.console.database.database import Database
from roundhouse.console.models import User
from roundhouse.console.settings import ConsoleSettings
from roundhouse.console.web.app import create_app


async def main(file: str, folder: str) -> None:
    home, database = Home(Path(folder)), Database(URL.create("sqlite", database=file))
    there = populate(database, home)
    with database.writing() as session:
        admin = session.scalars(select(User).where(User.role == "admin")).one()
        cookie = Logins().begin(session, admin, address="", browser="")
    app = create_app(ConsoleSettings(home=home), database)
    paths = [path for method, path, _ in routes_of(app) if method == "GET"]
    answers = {}
    for path in (*paths, "/plan?model=demo:smollm2", "/builds/new?model=demo:smollm2&weights=fp8"):
        status, _ = await visit(app, "GET", named(path, there.known), {"cookie": f"roundhouse_login={cookie}"})
        answers[path] = status
    sys.stdout.write(json.dumps({"answers": answers, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
