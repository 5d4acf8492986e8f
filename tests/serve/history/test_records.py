"""Folders of records: whole, growing, ended, killed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from roundhouse.errors import BenchmarkStoppedError, ServeError, UsageError
from roundhouse.serve.history import RecordAwayError, RecordStore, read_end, read_header, read_lines, state_of
from roundhouse.serve.history.raw import MOST_FILE_BYTES


class About(BaseModel):
    what: str


class Number(BaseModel):
    value: int


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "numbers", "number")


def test_a_record_runs_until_it_is_ended(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        writer.add("numbers", Number(value=1))
        writer.add("numbers", Number(value=2), Number(value=3))
        assert state_of(writer.folder) == "running"
        assert [each.value for each in read_lines(writer.folder, "numbers", Number)] == [1, 2, 3]
    assert state_of(writer.folder) == "finished"
    assert read_header(writer.folder, About).what == "counting"
    assert [each.value for each in read_lines(writer.folder, "numbers", Number, skip=2)] == [3]


def test_nothing_was_counted(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        pass
    assert list(read_lines(writer.folder, "numbers", Number)) == []


@pytest.mark.parametrize(
    ("raised", "state", "problem"),
    [
        (KeyboardInterrupt(), "cancelled", None),
        (BenchmarkStoppedError("stopped"), "cancelled", None),
        (ServeError("the server is gone", hint="start it"), "failed", "the server is gone"),
        (ValueError("odd"), "failed", "ValueError: odd"),
    ],
)
def test_what_is_raised_says_how_it_ended(store: RecordStore, raised: BaseException, state: str, problem: str | None) -> None:
    def count() -> None:
        with store.create("a1", About(what="counting")) as writer:
            writer.add("numbers", Number(value=1))
            raise raised

    with pytest.raises(type(raised)):
        count()
    folder = store.find("a1")
    end = read_end(folder)
    assert end is not None
    assert (end.state, end.problem, state_of(folder)) == (state, problem, state)
    assert [each.value for each in read_lines(folder, "numbers", Number)] == [1]


def test_what_is_said_first_holds(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        writer.end("failed", "no numbers left")
    assert state_of(writer.folder) == "failed"


def test_the_same_id_is_not_begun_twice(store: RecordStore) -> None:
    with store.create("a1", About(what="first")):
        pass
    with pytest.raises(ServeError, match="numbers"):
        store.create("a1", About(what="second"))
    assert read_header(store.find("a1"), About).what == "first"
    assert [each.name for each in store] == ["a1"]
    assert [each.name for each in store.folder.iterdir()] == ["a1"]


KILLED = """
    import sys, time
    from pathlib import Path
    from pydantic import BaseModel
    from roundhouse.serve.history import RecordStore

    class About(BaseModel):
        what: str

    class Number(BaseModel):
        value: int

    store, id_, first = RecordStore(Path(sys.argv[1]), "number"), sys.argv[2], int(sys.argv[3])
    writer = store.create(id_, About(what="killed"))
    for value in range(first, first + 20):
        writer.add("numbers", Number(value=value))
    print("written", flush=True)
    time.sleep(60)
"""


def start(store: RecordStore, id_: str, first: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(store.folder), id_, str(first)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_write_and_are_killed_and_nothing_is_lost(store: RecordStore) -> None:
    writers = [start(store, "a1", 0), start(store, "b2", 100)]
    try:
        for each in writers:
            assert each.stdout is not None
            assert each.stdout.readline() == "written\n"
        assert {state_of(folder) for folder in store} == {"running"}
    finally:
        for each in writers:
            os.kill(each.pid, signal.SIGKILL)
            each.communicate()
    deadline = time.monotonic() + 20  # a killed process lets go of its lock when its last thread is gone
    while "running" in {state_of(folder) for folder in store} and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {state_of(folder) for folder in store} == {"interrupted"}
    for id_, first in (("a1", 0), ("b2", 100)):
        assert [each.value for each in read_lines(store.find(id_), "numbers", Number)] == list(range(first, first + 20))


def test_half_a_last_line_is_left_out(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        writer.add("numbers", Number(value=1))
    with (writer.folder / "numbers.jsonl").open("a") as lines:
        lines.write('{"val')
    assert [each.value for each in read_lines(writer.folder, "numbers", Number)] == [1]


def test_what_a_full_disk_took_half_of_spoils_nothing(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    room = [6]

    def full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        took, room[0] = written(descriptor, data[: room[0]]), 0
        return took

    with store.create("a1", About(what="counting")) as writer:
        writer.add("numbers", Number(value=1))
        with monkeypatch.context() as patch:
            written = os.write
            patch.setattr(os, "write", full)
            with pytest.raises(ServeError, match="No space left on device"):
                writer.add("numbers", Number(value=2))
        writer.add("numbers", Number(value=3))
    assert [each.value for each in read_lines(writer.folder, "numbers", Number)] == [1, 3]


def test_what_went_wrong_is_told_also_when_that_cannot_be_written_down(store: RecordStore) -> None:
    def lose() -> None:
        with store.create("a1", About(what="counting")) as writer:
            shutil.rmtree(writer.folder)
            raise ServeError("the server is gone")

    with pytest.raises(ServeError, match="the server is gone"):
        lose()


def test_a_record_whose_end_is_damaged_is_named_and_can_be_removed(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        pass
    (writer.folder / "end.json").write_text('{"state": "over"}')
    with pytest.raises(ServeError, match=r"end\.json is damaged or of another version of Roundhouse: state: [^\n]*$"):
        state_of(writer.folder)
    store.remove(writer.folder)
    assert list(store) == []


def test_a_damaged_line_is_named(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        writer.add("numbers", Number(value=1))
    with (writer.folder / "numbers.jsonl").open("a") as lines:
        lines.write('{"value": "many"}\n')
    with pytest.raises(ServeError, match=r"numbers\.jsonl"):
        list(read_lines(writer.folder, "numbers", Number))


def test_a_header_of_another_kind_is_named(store: RecordStore) -> None:
    with store.create("a1", Number(value=1)) as writer:
        pass
    with pytest.raises(ServeError, match=r"header\.json.*what"):
        read_header(writer.folder, About)


def test_where_there_is_none_that_is_said(store: RecordStore) -> None:
    with pytest.raises(UsageError, match=r"no number is called 'latest'\nThere is none yet\."):
        store.find("latest")


def test_records_are_found_by_what_people_type(store: RecordStore) -> None:
    for number, id_ in enumerate(("aa11", "aa22", "bb33")):
        with store.create(id_, About(what=id_)) as writer:
            os.utime(writer.folder / "header.json", ns=(number * 10**9, number * 10**9))
    assert [each.name for each in store] == ["bb33", "aa22", "aa11"]
    assert store.find("latest").name == "bb33"
    assert store.find("aa1").name == "aa11"
    with pytest.raises(UsageError, match="several"):
        store.find("aa")
    with pytest.raises(UsageError, match="no number"):
        store.find("cc")
    with pytest.raises(UsageError, match="no number"):
        store.find("")


class Dated(BaseModel):
    id: str
    began_at: datetime
    within: dict[str, str] = {}


def test_the_newest_is_what_was_measured_last_and_not_what_was_taken_in_last(store: RecordStore) -> None:
    for id_, day in (("a1", 3), ("b2", 1), ("c3", 2)):
        header = Dated(id=id_, began_at=datetime(2026, 1, day, tzinfo=UTC), within={"began_at": "2030-01-01T00:00:00Z"})
        with store.create(id_, header):
            pass
    assert [each.name for each in store] == ["a1", "c3", "b2"]
    assert store.find("latest").name == "a1"


def test_what_killed_processes_left_goes_and_what_lives_stays(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")):
        pass
    removed, abandoned, young, held = (store.folder / name for name in (".b2.removed", ".c3.new", ".d4.new", ".e5.new"))
    for folder in (removed, abandoned, young, held):
        folder.mkdir()
        (folder / "lock").touch()
    for folder in (removed, abandoned, held):
        os.utime(folder, (0, 0))
    with (held / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with store.create("f6", About(what="counting")):
            pass
        assert sorted(each.name for each in store.folder.iterdir()) == [".d4.new", ".e5.new", "a1", "f6"]
    os.utime(young, (0, 0))
    store.remove(store.find("f6"))
    assert [each.name for each in store.folder.iterdir()] == ["a1"]


def test_a_record_that_somebody_else_removes_meanwhile_ends_no_list(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id_ in ("a1", "b2"):
        with store.create(id_, About(what=id_)):
            pass
    seen = Path.iterdir

    def others_remove(folder: Path) -> Iterator[Path]:
        for each in list(seen(folder)):
            if each.name == "b2":
                shutil.rmtree(each)
            yield each

    monkeypatch.setattr(Path, "iterdir", others_remove)
    assert [each.name for each in store] == ["a1"]
    store.remove(store.folder / "b2")


def test_a_removed_record_is_gone_and_a_running_one_stays(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        with pytest.raises(UsageError, match="being measured"):
            store.remove(writer.folder)
        assert list(store) == [writer.folder]
    store.remove(writer.folder)
    assert list(store) == []
    assert list(store.folder.iterdir()) == []


def test_raw_files_are_kept_packed_and_large_ones_are_named(store: RecordStore, tmp_path: Path) -> None:
    small, large = tmp_path / "small.txt", tmp_path / "large.bin"
    small.write_text("one two three " * 1000)
    large.write_bytes(os.urandom(MOST_FILE_BYTES + 1))
    with store.create("a1", About(what="counting")) as writer:
        assert writer.raw.keep("8-0/small.txt", small)
        assert not writer.raw.keep("8-0/large.bin", large)
    assert [each.name for each in (writer.folder / "raw" / "8-0").iterdir()] == ["small.txt.gz"]
    assert "8-0/large.bin" in (writer.folder / "raw" / "left-out.txt").read_text()


def test_half_a_raw_file_is_not_kept(store: RecordStore, tmp_path: Path) -> None:
    with store.create("a1", About(what="counting")) as writer:
        with pytest.raises(ServeError, match="a raw file"):
            writer.raw.keep("nothing", tmp_path / "nothing")
        with pytest.raises(ServeError, match="a raw file"):
            writer.raw.keep("folder", tmp_path)
    assert list((writer.folder / "raw").iterdir()) == []


def test_what_cannot_be_read_just_now_is_not_damaged(store: RecordStore) -> None:
    with store.create("a1", About(what="counting")) as writer:
        writer.add("numbers", Number(value=1))
    folder = writer.folder
    for name in ("header.json", "numbers.jsonl", "end.json", "lock"):
        (folder / name).unlink()
        (folder / name).symlink_to(folder / name)  # an error of the system
    for read in (
        lambda: read_header(folder, About),
        lambda: list(read_lines(folder, "numbers", Number)),
        lambda: read_end(folder),
        lambda: state_of(folder),
        lambda: store.remove(folder),
    ):
        with pytest.raises(RecordAwayError, match="cannot be read"):
            read()
    (folder / "header.json").unlink()
    with pytest.raises(ServeError) as missing:
        read_header(folder, About)
    assert not isinstance(missing.value, RecordAwayError), "its folder is there"
    folder.rename(folder.with_name("away"))
    with pytest.raises(RecordAwayError):
        read_header(folder, About)
