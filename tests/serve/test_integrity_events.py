"""The file of integrity events: what engines write into it, and what is read of it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from driving import drain, failure, random_prompt, request, settings

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.serve.engine.integrity import Holder, IntegrityEvent
from roundhouse.serve.engine.tokenizer import EngineTokenizer
from roundhouse.serve.integrity_events import EventsFile, read_events
from roundhouse.serve.runtimes import create_loop


def event(name: str = "r", **changes: Any) -> IntegrityEvent:
    fields: dict[str, Any] = {
        "event": f"{name}/3/0",
        "time": 1_700_000_000.25,
        "kind": "tag",
        "request_id": name,
        "answer": 0,
        "step": 3,
        "column": 1,
        "page": 4,
        "expected_tag": 5,
        "found_tag": 10,
        "last_holders": [Holder(request_id="other", tag=10, step=3, how="shared")],
    }
    return IntegrityEvent(**fields | changes)


EVENTS = [
    event(),
    event("zwei\n\u2028 ü", kind="content", found_tag=5, last_holders=[]),
    event("third", kind="count", page=None, expected_tag=0, found_tag=None, last_holders=[]),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Its folders are not there yet."""
    return tmp_path / "home" / "logs" / "events.jsonl"


def test_each_event_is_a_line_that_names_the_engine(path: Path) -> None:
    for number, each in enumerate(EVENTS):
        assert path.exists() == (number > 0)
        EventsFile(path, f"engine {number}")(each)
    lines = path.read_bytes().split(b"\n")
    assert len(lines) == len(EVENTS) + 1
    assert lines[-1] == b""
    assert msgspec.json.decode(lines[0]) == {
        "event": "r/3/0",
        "time": 1_700_000_000.25,
        "kind": "tag",
        "request_id": "r",
        "answer": 0,
        "step": 3,
        "column": 1,
        "page": 4,
        "expected_tag": 5,
        "found_tag": 10,
        "last_holders": [{"request_id": "other", "tag": 10, "step": 3, "how": "shared"}],
        "engine": "engine 0",
    }
    expected = [msgspec.structs.replace(each, engine=f"engine {number}") for number, each in enumerate(EVENTS)]
    assert list(read_events(path)) == expected


def test_a_file_that_was_moved_away_begins_anew(path: Path, tmp_path: Path) -> None:
    write = EventsFile(path, "e")
    write(EVENTS[0])
    path.rename(tmp_path / "kept")
    write(EVENTS[1])
    assert [each.request_id for each in read_events(path)] == [EVENTS[1].request_id]


def test_a_file_that_is_full_takes_no_more_and_the_log_says_so(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    line = len(msgspec.json.encode(msgspec.structs.replace(event(), engine="e"))) + 1
    write = EventsFile(path, "e", most_bytes=2 * line)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            write(event())
        assert caplog.messages == []
        write(event("fourth"))
    assert caplog.messages == [f"{path} is full: integrity event fourth/3/0 is only in this log; move the file away"]
    assert len(list(read_events(path))) == 3
    assert path.stat().st_size == 3 * line


@pytest.mark.parametrize("blocked", ["logs", "home", "events.jsonl"])
def test_what_cannot_be_written_is_logged_and_serving_goes_on(
    path: Path, caplog: pytest.LogCaptureFixture, blocked: str
) -> None:
    if blocked == "events.jsonl":
        path.mkdir(parents=True)
    else:
        place = next(parent for parent in path.parents if parent.name == blocked)
        place.parent.mkdir(exist_ok=True)
        place.write_text("a file")
    with caplog.at_level(logging.ERROR):
        EventsFile(path, "e")(event())
    (message,) = caplog.messages
    assert message.startswith(f"integrity event r/3/0 could not be written to {path}: ")


def test_whatever_goes_wrong_with_an_event_is_logged_and_serving_goes_on(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = EventsFile(path, "e")
    with caplog.at_level(logging.ERROR):
        write(event("half a letter \ud800"))  # no UTF-8
    (message,) = caplog.messages
    assert message.startswith("integrity event half a letter \\ud800/3/0 could not be written to ")

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    caplog.clear()
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(Path, "open", no_memory)
        write(event("second"))
    (message,) = caplog.messages
    assert message.startswith("integrity event second/3/0 could not be written to ")
    write(event("third"))
    assert [each.request_id for each in read_events(path)] == ["third"]


@contextlib.contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """As on a disk that is full: what fits is written, and then nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("fits", [1, 40])
@pytest.mark.parametrize("same_process", [True, False])
def test_after_a_line_that_was_cut_off_the_next_event_has_one_of_its_own(
    path: Path, caplog: pytest.LogCaptureFixture, fits: int, same_process: bool
) -> None:
    write = EventsFile(path, "e")
    write(event("first"))
    with caplog.at_level(logging.ERROR), files_end_at(path.stat().st_size + fits):
        write(event("cut off"))
        write(event("kept out"))
    cut, kept_out = caplog.messages
    assert cut.startswith(f"integrity event cut off/3/0 could not be written to {path}: only {fits} of ")
    assert kept_out.startswith(f"integrity event kept out/3/0 could not be written to {path}: ")
    caplog.clear()
    for name in ("next", "last"):
        (write if same_process else EventsFile(path, "another"))(event(name))
    assert caplog.messages == []
    assert [each.request_id for each in read_events(path)] == ["first", "next", "last"]
    assert len(path.read_bytes().splitlines()) == 4


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    events = [event(f"{number} {'x' * (number % 7 * 100)}") for number in range(600)]
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.map(EventsFile(path, "e"), events, chunksize=10)
    found = [each.request_id for each in read_events(path)]
    assert len(found) == 600
    lines = [line for line in path.read_bytes().splitlines() if line]  # one may begin with an empty line: see EventsFile
    assert len(lines) == 600
    assert sorted(found) == sorted(each.request_id for each in events)


@pytest.mark.parametrize(
    "broken", [b'{"event":"r/3/0","ti', b"", b"null", b"[]", b'{"event":"r/3/0"}', b"\xff\xfe", b'{"event":"\xff"}']
)
def test_a_line_that_is_no_event_is_left_out(path: Path, broken: bytes) -> None:
    write = EventsFile(path, "e")
    write(EVENTS[0])
    with path.open("ab") as file:
        file.write(broken)
    write(EVENTS[2])
    with path.open("ab") as file:
        file.write(broken)  # and the last one was cut off
    assert [each.request_id for each in read_events(path)] == ["r", "third"]


def test_without_a_file_there_is_no_event(path: Path) -> None:
    assert list(read_events(path)) == []


def test_a_real_engine_s_events_are_in_its_home(
    tiny_engine: Engine, session_home: Home, tokenizer: EngineTokenizer, caplog: pytest.LogCaptureFixture
) -> None:
    loop = create_loop(tiny_engine, settings())
    loop.submit(request("victim of a stale tag", random_prompt(20), max_tokens=5))
    loop.step()
    page, tag = loop._live["victim of a stale tag"].answers[0].grants[1]
    loop.pool.tracker.page_tags[page] += 1000
    with caplog.at_level(logging.ERROR):
        outputs = drain(loop)
    (told,) = [each for each in read_events(session_home.integrity_events) if each.request_id == "victim of a stale tag"]
    assert (told.engine, told.page, told.expected_tag, told.found_tag) == (tiny_engine.manifest.id, page, tag, tag + 1000)
    assert told.event in failure(outputs).message
    assert str(told) in caplog.messages
    assert session_home.integrity_events == session_home.path / "logs" / "integrity-events.jsonl"
