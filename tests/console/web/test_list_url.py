"""Addresses of lists: what is as usual is not said, and another list begins at its beginning."""

from __future__ import annotations

from roundhouse.console.web.list_url import ListUrl


def test_only_what_differs_is_in_the_address() -> None:
    url = ListUrl(
        "/engines", {"sort": "-made", "size": 50}, text=None, host="", weights="fp8 & more", sort="-made", page=1, size=50
    )
    assert url() == "/engines?weights=fp8+%26+more"
    assert url(weights="") == "/engines"


def test_a_form_keeps_what_it_has_no_field_for_and_clearing_it_keeps_how_the_list_looks() -> None:
    url = ListUrl("/runs", {"sort": "-began", "size": 50}, text="x", series="s", sort="name", size=20, columns="note", page=3)
    assert url.kept("series", "sort", "size", "columns") == [
        ("series", "s"), ("sort", "name"), ("size", 20), ("columns", "note"),
    ]  # fmt: skip
    assert url.only("sort", "size", "columns") == "/runs?sort=name&size=20&columns=note"
    usual = ListUrl("/runs", {"sort": "-began", "size": 50}, text=None, sort="-began", size=50, page=1)
    assert (usual.kept("sort", "size"), usual.only("sort", "size")) == ([], "/runs")


def test_another_part_keeps_the_list_and_another_list_begins_at_its_first_part() -> None:
    url = ListUrl("/engines", {"sort": "-made"}, weights="fp8", sort="-made", page=3)
    assert url(page=4) == "/engines?weights=fp8&page=4"
    assert url(page=1) == "/engines?weights=fp8"
    assert url(sort="size") == "/engines?weights=fp8&sort=size"
