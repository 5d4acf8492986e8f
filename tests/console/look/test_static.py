"""What pages carry is ours or vendored as published, and everything a page needs comes from us."""

from __future__ import annotations

import hashlib
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from roundhouse.console.access.actor import Actor
from roundhouse.console.web.chips import CHIPS
from roundhouse.console.web.navigation import Attention, navigation
from roundhouse.console.web.rendering import STATIC, static_base, static_url

TEMPLATES = STATIC.parent / "templates"
VENDOR = STATIC / "vendor"
TEMPLATE_FILES = sorted(TEMPLATES.rglob("*.html"))
OWN = [path for path in chain(TEMPLATE_FILES, sorted(STATIC.rglob("*"))) if path.is_file() and VENDOR not in path.parents]


def named(path: Path) -> str:
    return path.relative_to(STATIC.parent).as_posix()


def test_vendored_files_are_as_published_and_nothing_else_is_there() -> None:
    packages = tomllib.loads((VENDOR / "VENDORED.toml").read_text())["package"]
    files = {name: digest for package in packages for name, digest in package["files"].items()}
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    assert there == {*files, "VENDORED.toml"}
    assert {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in files} == files
    for package in packages:
        assert package["name"]
        assert package["version"]
        assert package["licence"]
        assert any(name.endswith("LICENSE") for name in package["files"])


@pytest.mark.parametrize("path", OWN, ids=named)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    # A template may show an address as text; it may not load from one.
    found = re.findall(r"""(?:src|href|url\(|import|from)\s*[=(]?\s*["']?(?:https?:)?//[^"'\s]*""", text)
    assert found == []


@pytest.mark.parametrize("path", TEMPLATE_FILES, ids=named)
def test_templates_hold_no_inline_code(path: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text(), flags=re.DOTALL)
    assert re.findall(r"<style|<[a-z][^>]*\sstyle\s*=", text) == []
    assert re.findall(r"<[a-z][^>]*\s(?:on[a-z]+|hx-on[^=\s]*)\s*=", text) == []
    assert [tag for tag in re.findall(r"<script[^>]*>[^<]*", text) if "src=" not in tag or not tag.endswith(">")] == []
    assert re.findall(r"\|\s*safe\b", path.read_text()) == []


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".js"], ids=named)
def test_scripts_write_text_and_not_markup(path: Path) -> None:
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()) == []


def test_every_icon_that_is_named_is_there() -> None:
    drawn = re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text())
    assert len(drawn) == len(set(drawn))
    text = "\n".join(path.read_text() for path in TEMPLATE_FILES)
    used = set(re.findall(r"""\bicon\(\s*"([^"]+)\"""", text)) | {look.icon for look in CHIPS.values()}
    actor = Actor(1, "ada", "admin", "browser", "127.0.0.1")
    used |= {entry.icon for group in navigation("/", actor, Attention()) for entry in group.entries}
    assert used - set(drawn) == set()


def test_every_colour_that_is_used_is_defined() -> None:
    text = "\n".join(path.read_text() for path in sorted((STATIC / "css").iterdir()))
    assert set(re.findall(r"var\((--[a-z0-9-]+)", text)) == set(re.findall(r"(--[a-z0-9-]+)\s*:", text))


def test_every_state_has_a_word_an_icon_and_a_tone() -> None:
    styles = (STATIC / "css" / "states.css").read_text()
    for state, look in CHIPS.items():
        assert state == state.lower()
        assert f".chip-{look.tone} " in styles
        assert f".state-{look.tone} " in styles


def test_static_files_have_an_address_that_changes_with_them() -> None:
    assert static_url("js/main.js") == f"{static_base()}/js/main.js"
    with pytest.raises(FileNotFoundError):
        static_url("js/none.js")
