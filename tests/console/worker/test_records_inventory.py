"""The database knows which benchmarks and evaluations lie in a home, whoever measured them, and what became of them."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured import add_benchmarks, benchmark_content, evaluation_content, write_benchmark, write_evaluation
from populated import add_worker
from sqlalchemy import func, select, update

from roundhouse.build.home import Home
from roundhouse.console.access.actor import Actor
from roundhouse.console.benchmarks.deleting import delete_runs
from roundhouse.console.benchmarks.files import files_of, one_file
from roundhouse.console.benchmarks.queries import benchmark_detail, list_benchmarks, samples_since
from roundhouse.console.benchmarks.records import BenchmarkDetail, BenchmarkFilter
from roundhouse.console.database.base import utc_now
from roundhouse.console.database.database import Database
from roundhouse.console.errors import ConflictError
from roundhouse.console.evaluations.deleting import delete_evaluation
from roundhouse.console.evaluations.queries import evaluation_detail
from roundhouse.console.models import BenchmarkPoint, BenchmarkRun, BenchmarkSample, EvaluationRun, RecordFile, Worker
from roundhouse.console.paging import PageOf
from roundhouse.console.worker.records_inventory import RecordsInventory
from roundhouse.serve.benchmark.store import POINTS, SAMPLES, BenchmarkStore
from roundhouse.serve.history import read_end
from roundhouse.serve.history.store import new_id

ANN = Actor(1, "ann", "operator", "browser", "x")
WRITER = """
import sys, time
from pathlib import Path
from measured import benchmark_content, write_benchmark
from roundhouse.build.home import Home
writer = write_benchmark(Home(Path(sys.argv[1])), benchmark_content(0, part=0.25, samples=5))
with (writer.folder / "points.jsonl").open("a") as points:
    points.write('{"concurrency": 8, "repe')
print("written", flush=True)
time.sleep(600)
"""
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def inventory(database: Database, home: Home) -> RecordsInventory:
    add_worker(database, "here", str(home.path))
    return RecordsInventory(database, home, "here")


def runs(database: Database) -> list[tuple[str, str]]:
    with database.reading() as session:
        rows = session.execute(select(BenchmarkRun.id, BenchmarkRun.state).order_by(BenchmarkRun.id))
        return [(row.id, row.state) for row in rows]


def detail(database: Database, run: str) -> BenchmarkDetail:
    with database.reading() as session:
        return benchmark_detail(session, run)


def count(database: Database, table: type) -> int:
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


def worker_gone(database: Database, host: str = "here") -> None:
    with database.writing() as session:
        session.execute(update(Worker).where(Worker.host == host).values(seen_at=utc_now() - timedelta(hours=1)))


def test_a_run_of_the_command_line_is_followed_to_its_end(
    database: Database, home: Home, inventory: RecordsInventory, tmp_path: Path
) -> None:
    inventory.look()  # a home without records
    whole = benchmark_content(0, samples=30)
    started = dataclasses.replace(whole, points=whole.points[:2], prefill=(), samples=whole.samples[:10])
    writer = write_benchmark(home, started)
    inventory.look()
    found = detail(database, whole.header.id)
    assert (found.state, found.points, len(found.levels), found.files, found.job) == ("running", 2, 1, (), None)
    assert (found.header, found.all_points) == (whole.header, whole.points[:2])
    writer.add(POINTS, *whole.points[2:])
    writer.add("prefill", *whole.prefill)
    writer.add(SAMPLES, *whole.samples[10:])
    inventory.look()
    found = detail(database, whole.header.id)
    assert (found.state, found.all_points, found.all_prefill, found.samples) == ("running", whole.points, whole.prefill, 30)
    (tmp_path / "log").write_text("what aiperf said")
    writer.raw.keep("c1/log", tmp_path / "log")
    writer.end("finished")
    writer.close()
    inventory.look()
    found = detail(database, whole.header.id)
    end = read_end(writer.folder)
    assert end is not None
    assert (found.state, found.ended_at, [each.name for each in found.files]) == ("finished", end.at, ["c1/log"])
    assert found.tokens_per_s_most == max(level.output_tokens_per_s for level in found.levels)
    assert found.tokens_per_s_alone == found.levels[0].output_tokens_per_s
    with database.reading() as session:
        assert gzip.decompress(one_file(session, found.id, "c1/log")) == b"what aiperf said"
        assert [each.number for each in samples_since(session, found.id, 27).samples] == [28, 29]


def test_what_was_killed_is_interrupted_with_what_was_measured(
    database: Database, home: Home, inventory: RecordsInventory
) -> None:
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home.path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        inventory.look()
        ((run, state),) = runs(database)
        assert state == "running"
        assert detail(database, run).points == 3  # the torn line is none
        with database.writing() as session, pytest.raises(ConflictError, match="is being measured"):
            delete_runs(session, ANN, [run])
        process.send_signal(signal.SIGKILL)
    inventory.look()
    found = detail(database, run)
    assert (found.state, found.points, found.samples, found.ended_at, found.silent) == ("interrupted", 3, 5, None, False)
    RecordsInventory(database, home, "here").look()
    assert runs(database) == [(run, "interrupted")]


def test_a_run_whose_worker_is_gone_is_not_running_for_ever(
    database: Database, home: Home, inventory: RecordsInventory
) -> None:
    writer = write_benchmark(home, benchmark_content(0, part=0.5))
    inventory.look()
    worker_gone(database)
    run = writer.folder.name
    found = detail(database, run)
    assert (found.state, found.silent, found.points) == ("interrupted", True, 6)
    with database.reading() as session:
        shown = {
            state: list_benchmarks(session, BenchmarkFilter(state=state), PageOf()).total
            for state in ("running", "interrupted", "finished")
        }
        assert shown == {"running": 0, "interrupted": 1, "finished": 0}
        assert samples_since(session, run).state == "interrupted"
    writer.end("finished")  # it had gone on by itself
    writer.close()
    with database.writing() as session:
        session.execute(update(Worker).values(seen_at=utc_now()))
    RecordsInventory(database, home, "here").look()
    found = detail(database, run)
    assert (found.state, found.silent) == ("finished", False)


def test_what_the_command_line_removes_is_removed_everywhere_and_a_home_that_is_away_removes_nothing(
    database: Database, home: Home, inventory: RecordsInventory
) -> None:
    ids = []
    for number in range(2):
        with write_benchmark(home, benchmark_content(number, samples=3)) as writer:
            ids.append(writer.folder.name)
    inventory.look()
    away = home.path.with_name("away")
    home.path.rename(away)
    inventory.look()
    home.path.mkdir()
    inventory.look()
    assert [id_ for id_, _ in runs(database)] == ids
    home.path.rmdir()
    away.rename(home.path)
    store = BenchmarkStore(home)
    store.records.remove(store.records.find(ids[0]))
    inventory.look()
    assert [id_ for id_, _ in runs(database)] == ids[1:]
    assert count(database, BenchmarkSample) == 3


def test_deleting_in_the_console_deletes_rows_at_once_and_then_folder_and_files(
    database: Database, home: Home, inventory: RecordsInventory, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("x")
    with write_benchmark(home, benchmark_content(0, samples=3)) as writer:
        writer.raw.keep("log", tmp_path / "log")
    with write_evaluation(home, evaluation_content(0)) as evaluated:
        pass
    inventory.look()
    assert count(database, RecordFile) == 1
    with database.writing() as session:
        delete_runs(session, ANN, [writer.folder.name])
        delete_evaluation(session, ANN, evaluated.folder.name)
    assert [count(database, table) for table in (RecordFile, BenchmarkPoint, BenchmarkSample)] == [0, 0, 0]
    with database.reading() as session:
        assert list_benchmarks(session, BenchmarkFilter(), PageOf()).total == 0
    assert writer.folder.is_dir()
    # Another worker of the home may have been just about to write it down.
    RecordsInventory(database, home, "there").look()
    assert count(database, BenchmarkPoint) == 0
    inventory.look()
    assert not writer.folder.exists()
    assert not evaluated.folder.exists()
    assert [count(database, table) for table in (BenchmarkRun, EvaluationRun)] == [0, 0]
    assert list((home.path / "benchmarks").iterdir()) == []


def test_what_was_deleted_while_it_ran_unseen_goes_when_it_has_ended(
    database: Database, home: Home, inventory: RecordsInventory
) -> None:
    writer = write_benchmark(home, benchmark_content(0, part=0.5))
    inventory.look()
    worker_gone(database)
    with database.writing() as session:
        delete_runs(session, ANN, [writer.folder.name])
    for _ in range(2):
        inventory.look()
        assert writer.folder.is_dir()
        assert count(database, BenchmarkPoint) == 0
    writer.close()
    inventory.look()
    assert not writer.folder.exists()
    assert runs(database) == []


def test_two_homes_have_runs_of_their_own_and_a_copy_counts_once(
    database: Database, home: Home, inventory: RecordsInventory, tmp_path: Path
) -> None:
    other = Home(tmp_path / "another home")
    add_worker(database, "there", str(other.path))
    with write_benchmark(home, benchmark_content(0)) as first, write_benchmark(other, benchmark_content(1)) as second:
        pass
    there = RecordsInventory(database, other, "there")
    inventory.look()
    shutil.copytree(first.folder, other.path / "benchmarks" / first.folder.name)
    there.look()
    hosts = {id_: detail(database, id_).host for id_, _ in runs(database)}
    assert hosts == {first.folder.name: "here", second.folder.name: "there"}
    shutil.rmtree(first.folder)
    inventory.look()
    assert [id_ for id_, _ in runs(database)] == [second.folder.name]
    again = RecordsInventory(database, other, "there")
    again.look()
    assert detail(database, first.folder.name).host == "there"


def test_a_home_that_was_moved_takes_its_runs_along(
    database: Database, home: Home, inventory: RecordsInventory, tmp_path: Path
) -> None:
    writer = write_benchmark(home, benchmark_content(0, part=0.5))
    inventory.look()
    worker_gone(database)
    moved = Home(tmp_path / "moved")
    home.path.rename(moved.path)
    add_worker(database, "there", str(moved.path))
    writer.close()
    RecordsInventory(database, moved, "there").look()
    found = detail(database, writer.folder.name)
    assert (found.host, found.home, found.state, found.points) == ("there", str(moved.path), "interrupted", 6)


def test_a_folder_that_is_damaged_is_told_of_once_and_keeps_no_other_back(
    database: Database, home: Home, inventory: RecordsInventory, caplog: pytest.LogCaptureFixture
) -> None:
    with write_benchmark(home, benchmark_content(0)) as broken, write_benchmark(home, benchmark_content(1)) as odd:
        pass
    with write_benchmark(home, benchmark_content(2)) as good:
        pass
    (broken.folder / "header.json").write_text("{}")
    lines = (odd.folder / "points.jsonl").read_text().splitlines(keepends=True)
    (odd.folder / "points.jsonl").write_text("".join([*lines[:4], "{}\n", *lines[4:]]))
    (home.path / "benchmarks" / "nothing").mkdir()
    (home.path / "benchmarks" / "a link").symlink_to(good.folder)
    for _ in range(3):
        inventory.look()
    assert [id_ for id_, _ in runs(database)] == [odd.folder.name, good.folder.name]
    found = detail(database, odd.folder.name)
    assert (found.state, found.points) == ("failed", 4)
    assert "points.jsonl is damaged" in str(found.problem)
    (told,) = [record.getMessage() for record in caplog.records if "cannot be written down" in record.getMessage()]
    assert broken.folder.name in told


DAMAGE = {"a line": ("{name}.jsonl", "{}\n"), "the end": ("end.json", "{"), "the header": ("header.json", "{")}


@pytest.mark.parametrize("damaged", DAMAGE)
@pytest.mark.parametrize("kind", ["benchmarks", "evaluations"])
def test_what_cannot_be_read_has_failed_and_says_why(
    database: Database, home: Home, inventory: RecordsInventory, kind: str, damaged: str
) -> None:
    """It was running when it was last seen, and would be for ever."""
    name, content = DAMAGE[damaged]
    if kind == "benchmarks":
        writer, table = write_benchmark(home, benchmark_content(0, part=0.5)), BenchmarkRun
        file = name.format(name="points")
    else:
        writer, table = write_evaluation(home, evaluation_content(0, state="running")), EvaluationRun  # type: ignore[assignment]
        file = name.format(name="scores")
    inventory.look()
    path = writer.folder / file
    if damaged != "a line":
        path.unlink(missing_ok=True)
    with path.open("a") as lines:
        lines.write(content)
    inventory.look()

    def state() -> tuple[str, str | None]:
        with database.reading() as session:
            row = session.scalars(select(table)).one()
            return row.state, row.problem

    assert state()[0] == "running", "somebody measures it"
    writer.close()
    for _ in range(2):
        inventory.look()
    assert state()[0] == "failed"
    assert file in str(state()[1])
    RecordsInventory(database, home, "here").look()
    assert state()[0] == "failed"


@pytest.mark.parametrize("file", ["points.jsonl", "prefill.jsonl", "samples.jsonl", "end.json", "header.json", "lock"])
def test_a_run_that_cannot_be_read_for_a_moment_is_read_again(
    database: Database, home: Home, inventory: RecordsInventory, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    """A disk that fails, too many open files: that says nothing of what was measured."""
    whole = benchmark_content(0, samples=3)
    with write_benchmark(home, dataclasses.replace(whole, points=whole.points[:2], prefill=())) as writer:
        inventory.look()
        writer.add(POINTS, *whole.points[2:])
        writer.add("prefill", *whole.prefill)
    with write_benchmark(home, benchmark_content(1)) as other:
        pass
    path, kept = writer.folder / file, home.path / "kept"
    path.rename(kept)
    path.symlink_to(path)  # "Too many levels of symbolic links": an error of the system, and no content
    for _ in range(3):
        inventory.look()
    found = detail(database, whole.header.id)
    assert (found.state, found.points, found.problem) == ("running", 2, None), "as it was known"
    assert detail(database, other.folder.name).state == "finished", "it holds up no other"
    assert len([each for each in caplog.records if "cannot be written down" in each.getMessage()]) == 1
    path.unlink()
    kept.rename(path)
    inventory.look()
    found = detail(database, whole.header.id)
    assert (found.state, found.all_points, found.all_prefill, found.problem) == ("finished", whole.points, whole.prefill, None)


@pytest.mark.parametrize("file", ["scores.jsonl", "end.json", "header.json"])
def test_an_evaluation_that_cannot_be_read_for_a_moment_is_read_again(
    database: Database, home: Home, inventory: RecordsInventory, file: str
) -> None:
    with write_evaluation(home, content := evaluation_content(0)) as writer:
        inventory.look()
    path, kept = writer.folder / file, home.path / "kept"
    path.rename(kept)
    path.symlink_to(path)
    states = []
    for _ in range(2):
        inventory.look()
        with database.reading() as session:
            states.append(session.scalars(select(EvaluationRun.state)).one())
    path.unlink()
    kept.rename(path)
    inventory.look()
    with database.reading() as session:
        found = evaluation_detail(session, content.header.id)
    assert (states, found.state, found.all_scores, found.problem) == (["running"] * 2, "finished", content.scores, None)


def test_what_is_away_for_ever_comes_after_the_others(
    database: Database, home: Home, inventory: RecordsInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundhouse.console.worker.records_inventory._MOST_AT_ONCE", 1)
    with write_benchmark(home, benchmark_content(0)) as old, write_benchmark(home, benchmark_content(1)) as new:
        pass
    os.utime(new.folder / "header.json", (4e9, 4e9))
    path = new.folder / "points.jsonl"
    path.unlink()
    path.symlink_to(path)
    inventory.look()
    inventory.look()
    assert runs(database) == [(old.folder.name, "finished")]


def test_of_a_damaged_evaluation_what_stands_before_the_damage_counts(
    database: Database, home: Home, inventory: RecordsInventory
) -> None:
    with write_evaluation(home, content := evaluation_content(0)) as writer:
        pass
    with (writer.folder / "scores.jsonl").open("a") as lines:
        lines.write("nothing\n")
    inventory.look()
    with database.reading() as session:
        found = evaluation_detail(session, content.header.id)
    assert (found.state, found.all_scores, found.gate) == ("failed", content.scores, "not measured")
    assert "scores.jsonl is damaged" in str(found.problem)


def test_nothing_is_written_where_nothing_changed(
    database: Database, home: Home, inventory: RecordsInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with write_benchmark(home, benchmark_content(0)):
        pass
    running = write_benchmark(home, benchmark_content(1, part=0.5))
    inventory.look()

    def writes() -> None:
        raise AssertionError("there was nothing to write")

    monkeypatch.setattr(database, "writing", writes)
    inventory.look()
    inventory.look()
    running.close()


def test_an_evaluation_is_followed_to_its_end(database: Database, home: Home, inventory: RecordsInventory) -> None:
    content = evaluation_content(1)
    with write_evaluation(home, content) as writer:
        inventory.look()
        with database.reading() as session:
            found = evaluation_detail(session, writer.folder.name)
        assert (found.state, found.all_scores, found.gate) == ("running", content.scores, "not measured")
        writer.add("items", content.scores[0])
    inventory.look()
    with database.reading() as session:
        found = evaluation_detail(session, writer.folder.name)
        assert [each.name for each in files_of(session, found.id)] == ["items.jsonl"]
    assert (found.state, found.gate, found.base_name) == ("finished", "passed", "tiny-bf16-bf16")
    assert found.worst_difference == pytest.approx(0.4)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.booleans()), min_size=1, max_size=6),
    seed=st.integers(0, 9),
)
def test_whenever_it_is_looked_at_all_that_is_whole_is_known(
    database: Database, home: Home, parts: list[tuple[int, int, bool]], seed: int
) -> None:
    inventory = RecordsInventory(database, home, "here")
    whole = benchmark_content(seed, samples=60, id=new_id())
    writer = write_benchmark(home, dataclasses.replace(whole, points=(), prefill=(), samples=()))
    points, samples = 0, 0
    for more_points, more_samples, torn in parts:
        writer.add(POINTS, *whole.points[points : points + more_points], durable=False)
        writer.add(SAMPLES, *whole.samples[samples : samples + more_samples], durable=False)
        points, samples = min(points + more_points, len(whole.points)), samples + more_samples
        file = writer.folder / "samples.jsonl"
        length = file.stat().st_size
        if torn:
            with file.open("a") as lines:
                lines.write('{"at_s": 1')
        inventory.look()
        os.truncate(file, length)
        found = detail(database, writer.folder.name)
        assert found.all_points == whole.points[:points]
        assert found.samples == samples
    writer.end("cancelled")
    writer.close()
    inventory.look()
    found = detail(database, writer.folder.name)
    assert (found.state, found.points, found.samples) == ("cancelled", points, samples)


def test_thousands_that_are_known_are_not_opened(database: Database, home: Home, inventory: RecordsInventory) -> None:
    with write_benchmark(home, benchmark_content(0)) as writer:
        pass
    inventory.look()
    (writer.folder / "points.jsonl").unlink()  # whoever opened it would find no point
    RecordsInventory(database, home, "here").look()
    assert detail(database, writer.folder.name).points == 12
    with database.writing() as session:
        add_benchmarks(session, 1, first=5, host="here", home="/another")
    inventory.look()
    assert len(runs(database)) == 2


def test_a_copy_of_a_run_is_not_the_run(database: Database, home: Home, inventory: RecordsInventory) -> None:
    write_benchmark(home, content := benchmark_content(0)).close()
    inventory.look()
    before = detail(database, content.header.id)
    folder = BenchmarkStore(home).records.find(content.header.id)
    shutil.copytree(folder, folder.with_name("backup"))
    (folder.with_name("backup") / "points.jsonl").write_text("")
    inventory.look()
    assert detail(database, content.header.id).all_points == before.all_points
    assert [id_ for id_, _ in runs(database)] == [content.header.id]


def test_a_folder_that_cannot_be_deleted_holds_up_no_other(
    database: Database, home: Home, inventory: RecordsInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, gone = benchmark_content(0), benchmark_content(1)
    for each in (kept, gone):
        write_benchmark(home, each).close()
    inventory.look()
    with database.writing() as session:
        delete_runs(session, ANN, [kept.header.id, gone.header.id])
    rename = Path.rename

    def not_that(self: Path, target: Path) -> Path:
        if self.name == kept.header.id:
            raise PermissionError(13, "Permission denied", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", not_that)
    write_benchmark(home, new := benchmark_content(2)).close()
    inventory.look()
    assert [id_ for id_, _ in runs(database)] == [kept.header.id, new.header.id]
    assert not (home.path / "benchmarks" / gone.header.id).exists()
    monkeypatch.undo()
    inventory.look()
    assert [id_ for id_, _ in runs(database)] == [new.header.id]
