"""The log of a deployment: numbered lines that survive rotation, whoever reads them."""

from __future__ import annotations

import os
from pathlib import Path

from roundhouse.console.supervisor.log import LogReader, LogWriter


def writer(folder: Path, most_bytes: int = 100) -> LogWriter:
    return LogWriter(folder, most_bytes=most_bytes, instead_of=())


def test_lines_keep_their_numbers_over_rotation_and_new_readers(tmp_path: Path) -> None:
    log, old = writer(tmp_path), LogReader(tmp_path)
    read: list[tuple[int, str]] = []
    for number in range(1, 60):
        log.say(f"line {number}")
        read += old.after(len(read), most=100)
    assert read == [(number, f"line {number}") for number in range(1, 60)]
    files = list(tmp_path.glob("server-*.log"))
    assert len(files) == 2
    assert all(path.stat().st_size < 120 for path in files)
    new = LogReader(tmp_path).after(50, most=100)
    assert new == read[50:]


def test_what_was_rotated_away_unread_is_left_out(tmp_path: Path) -> None:
    log, reader = writer(tmp_path), LogReader(tmp_path)
    log.say("line 1")
    assert reader.after(0, most=100) == [(1, "line 1")]
    for number in range(2, 60):
        log.say(f"line {number}")
    read = reader.after(1, most=100)
    assert 2 < read[0][0] < 59
    assert read == [(number, f"line {number}") for number in range(read[0][0], 60)]


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    log, reader = writer(tmp_path), LogReader(tmp_path)
    log.say("whole")
    with (tmp_path / "server-1.log").open("ab") as file:
        file.write(b"ha")
        file.flush()
        assert reader.after(0, most=10) == [(1, "whole")]
        file.write(b"lf\n")
    assert reader.after(1, most=10) == [(2, "half")]


def test_a_reader_may_be_asked_again_for_what_it_has_read(tmp_path: Path) -> None:
    log, reader = writer(tmp_path), LogReader(tmp_path)
    for number in range(1, 4):
        log.say(f"line {number}")
    assert reader.after(0, most=10) == reader.after(0, most=10)
    assert reader.after(0, most=2) == [(2, "line 2"), (3, "line 3")]


def test_a_log_goes_on_under_another_writer(tmp_path: Path) -> None:
    (tmp_path / "server-11.log").write_text("line 11\n")
    writer(tmp_path).say("line 12")
    assert LogReader(tmp_path).after(0, most=10) == [(11, "line 11"), (12, "line 12")]


def test_what_is_no_text_and_what_is_long_does_no_harm(tmp_path: Path) -> None:
    log = writer(tmp_path, 10**6)
    log.say("x" * 10_000)
    log.say("one\ntwo")
    with (tmp_path / "server-1.log").open("ab") as file:
        file.write(b"\xff\xfe\n")
    lines = LogReader(tmp_path).after(0, most=10)
    assert [len(text) for _, text in lines] == [4000, 7, 2]


def test_what_others_print_is_in_the_log(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    log = LogWriter(tmp_path, most_bytes=20, instead_of=(write,))
    log.say("a line that is so long that another file begins")
    os.write(write, b"printed\n")
    os.close(write)
    assert [text for _, text in LogReader(tmp_path).after(1, most=10)] == ["printed"]


def test_no_folder_has_no_lines(tmp_path: Path) -> None:
    assert LogReader(tmp_path / "none").after(0, most=10) == []
