"""What every list says where a part behind its end is asked for."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from browsing import BrowserMaker
from populated import populate

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database

LISTS = {
    "/builds?kind=all": 2,
    "/builds/table?kind=all": 2,
    "/engines?state=any": 1,
    "/deployments?state=any": 2,
    "/workers?state=alive": 1,
    "/workers/list?state=alive": 1,
    "/users?role=viewer": 1,
    "/audit?action=job.cancel": 1,
    "/integrity?kind=tag": 1,
    "/integrity/drills": 1,
}


@pytest.mark.parametrize("address", LISTS)
def test_behind_the_end_a_list_leads_to_its_last_page_and_keeps_its_filters(
    browser: BrowserMaker, database: Database, tmp_path: Path, address: str
) -> None:
    populate(database, Home(tmp_path / "home"))
    admin = browser("admin")
    text = unescape(admin.get(f"{address}{'&' if '?' in address else '?'}page=99&size=1").text)
    pages = LISTS[address]
    assert f"This list has {pages} page{'s' if pages > 1 else ''}." in text
    assert "these filters" not in text
    way = text.partition("This list has")[2].partition('href="')[2].partition('"')[0]
    assert way.partition("?")[0] == address.partition("?")[0].removesuffix("/table").removesuffix("/list")
    assert address.partition("?")[2] in way
    assert "This list has" not in admin.get(way).text


@pytest.mark.parametrize("address", ["/builds", "/engines", "/deployments", "/integrity", "/integrity/drills"])
def test_an_empty_list_is_empty_on_every_page(browser: BrowserMaker, address: str) -> None:
    assert "This list has" not in browser("viewer").get(f"{address}?page=99").text
