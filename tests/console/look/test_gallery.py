"""The gallery as HTML: what macros write, without a browser."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from gallery import page

Attributes = dict[str, str | None]


class Elements(HTMLParser):
    """All elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Attributes]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, *tags: str) -> list[Attributes]:
        return [attributes for tag, attributes in self.found if tag in tags]


@pytest.fixture(scope="module")
def elements() -> Elements:
    return Elements(page("/gallery", "dark"))


def test_ids_are_unique_and_what_refers_to_them_finds_them(elements: Elements) -> None:
    ids = Counter(attributes["id"] for _, attributes in elements.found if attributes.get("id"))
    assert [name for name, count in ids.items() if count > 1] == []
    referred = [
        name for _, each in elements.found for key in ("aria-describedby", "for") for name in (each.get(key) or "").split()
    ]
    assert referred
    assert set(referred) - set(ids) == set()


def test_every_field_has_a_label_and_a_wrong_one_says_why(elements: Elements) -> None:
    labelled = {attributes["for"] for attributes in elements.named("label") if "for" in attributes}
    for attributes in elements.named("input", "select", "textarea"):
        if attributes.get("type") not in ("hidden", "radio"):
            assert attributes["id"] in labelled
    (wrong,) = [attributes for attributes in elements.named("input") if attributes.get("aria-invalid")]
    assert "group_size-error" in (wrong["aria-describedby"] or "")


def test_every_form_that_posts_carries_the_token() -> None:
    forms = re.findall(r"<form[^>]*method=\"post\".*?</form>", page("/gallery", "dark"), flags=re.DOTALL)
    assert len(forms) >= 5
    assert all('name="form_token" value="token"' in form for form in forms)


def test_nothing_is_inline(elements: Elements) -> None:
    wrong = [
        (tag, name)
        for tag, attributes in elements.found
        for name in attributes
        if name == "style" or (name.startswith("on") and tag != "option")
    ]
    assert wrong == []
    assert all("src" in attributes for attributes in elements.named("script"))


def test_what_logs_say_is_text() -> None:
    html = page("/gallery", "dark")
    assert "&lt;script&gt;document.title" in html
    assert "<script>document" not in html


def test_numbers_and_states_are_said_in_words(elements: Elements) -> None:
    for words in ("11.0 GiB too much", "405.7 MiB free", "about 48 s left", "56.6%", "101–150 of 10,432", "differs: "):
        assert words in elements.text
    labels = [attributes["aria-label"] or "" for attributes in elements.named("svg") if attributes.get("role") == "img"]
    assert "KV pages: 231 in use, 64 shared prefix, 3 quarantined, 470 free" in labels
    assert "GPU 1: 91.0 GiB of 80.0 GiB taken, 11.0 GiB too much" in labels


def test_sorting_turns_round_and_is_said(elements: Elements) -> None:
    sorted_by = [attributes for attributes in elements.named("th") if attributes.get("aria-sort")]
    assert [attributes["aria-sort"] for attributes in sorted_by] == ["descending"]
    links = {attributes["href"] for attributes in elements.named("a") if attributes.get("class") == "sort"}
    assert links == {"/gallery?sort=name", "/gallery?sort=size", "/gallery?sort=created"}


def test_the_theme_is_written_by_the_server(elements: Elements) -> None:
    (html,) = elements.named("html")
    assert html["data-theme"] == "dark"


def test_what_waits_for_scripts_is_hidden_without_them(elements: Elements) -> None:
    for attributes in elements.named("button"):
        names = set(attributes)
        if names & {"data-copy", "data-close", "data-log-follow", "data-log-error", "data-log-wrap"}:
            assert "hidden" in attributes
