"""Commands for a console elsewhere, against a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from built import ID, add_built
from deployed import add_deployment, add_lines, add_samples
from populated import HOME, HOST, add_worker, populate, token_of
from scripted_worker import ScriptedWorker
from served_app import RemoteCommand
from sqlalchemy import func, select

from roundhouse.build.home import Home
from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry, Deployment, Job

SHAPE = "shape:llama-3.1-8b"
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
def test_a_plan_is_the_one_that_this_machine_would_make(remote: RemoteCommand, run_main: RemoteCommand) -> None:
    options = ["plan", SHAPE, "--gpu", "h200", "--kv", "fp8", "--json"]
    there, here = remote(*options), run_main(*options)
    assert (there.code, there.err) == (0, "")
    assert json.loads(there.out) == json.loads(here.out)
    assert "Plan of shape:llama-3.1-8b for H200-SXM: legal" in remote("plan", SHAPE, "--gpu", "h200").out
    assert json.loads(remote("plan", SHAPE, SHAPE, "--gpu", "h200", "--json").out)["schema"] == "roundhouse.plans/1"


@on_sqlite
def test_a_recipe_is_read_here_and_what_is_refused_exits_with_3(remote: RemoteCommand, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("model: shape:llama-3.1-8b\ntensor_parallel: 3\ntarget: tensorrt\n")
    refused = remote("plan", str(recipe), "--gpu", "h200")
    assert refused.code == 3
    assert "tensor_parallel 3" in refused.out
    recipe.write_text("model: shape:llama-3.1-8b\nweigths: fp8\n")
    wrong = remote("plan", str(recipe))
    assert wrong.code == 2
    assert "weigths" in wrong.err


@on_sqlite
def test_paths_of_models_are_the_servers(remote: RemoteCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    relative = remote("build", "./model")
    assert relative.code == 2
    assert "reads files of its own" in relative.err
    absolute = remote("build", str(tmp_path / "model"))
    assert absolute.code == 2
    assert "is not in a folder that may be read" in absolute.err
    assert "one of the console's machine" in absolute.err


def test_a_build_is_followed_to_its_engine(remote: RemoteCommand, database: Database) -> None:
    worker = ScriptedWorker(database, add_worker(database))
    with database.writing() as session:
        add_built(session)
    done = worker.ends("succeeded", "import: 272 tensors", engine_id=ID, result={"engine_id": ID, "new": True})
    with worker.doing(done):
        built = remote("build", "demo:smollm2", "--name", "mine", "--follow")
    assert built.code == 0, built.err
    assert ID in built.out
    assert "one:/srv/roundhouse/engines" in built.out
    assert "import: 272 tensors" in built.err
    assert "quantize" in built.err
    assert built.err.count("the model") == 1  # a stage and its log line say the same
    with worker.doing(done):
        answer = json.loads(remote("build", "demo:smollm2", "--follow", "--json").out)
    assert answer["id"] == ID
    assert answer["new"] is True
    with database.reading() as session:
        assert session.scalar(select(Job.subject).order_by(Job.id)) == "mine"


@on_sqlite
@pytest.mark.parametrize(
    ("state", "said"), [("failed", "no room on the disk"), ("cancelled", "was cancelled"), ("interrupted", "went away")]
)
def test_a_build_that_does_not_succeed_exits_with_1(remote: RemoteCommand, database: Database, state: str, said: str) -> None:
    worker = ScriptedWorker(database, add_worker(database))
    how = {"error": "no room on the disk", "hint": "Free some."} if state == "failed" else {}
    with worker.doing(worker.ends(state, **how)):  # type: ignore[arg-type]
        ended = remote("build", "demo:smollm2", "--follow")
    assert ended.code == 1
    assert said in ended.err
    assert ("Free some." in ended.err) is (state == "failed")


@on_sqlite
def test_a_build_that_nobody_follows_waits_and_jobs_show_it(remote: RemoteCommand, database: Database) -> None:
    asked = remote("build", "demo:smollm2")
    assert asked.code == 0
    assert "job 1 is in line" in asked.out
    assert "No worker is alive" in remote("jobs", "show", "1").out
    listed = json.loads(remote("jobs", "list", "--kind", "build", "--json").out)
    assert (listed["total"], listed["items"][0]["state"]) == (1, "queued")
    assert "is cancelled" in remote("jobs", "cancel", "1").out
    assert "is cancelled" in remote("jobs", "cancel", "1").out  # asking again changes nothing
    assert remote("jobs", "retry", "1").code == 0
    assert json.loads(remote("jobs", "show", "1", "--json").out)["job"]["state"] == "queued"
    assert remote("jobs", "show", "99").code == 2
    assert remote("jobs", "list", "--kind", "nonsense").code == 2


@on_sqlite
def test_a_log_is_printed_whole(remote: RemoteCommand, database: Database, home: Home) -> None:
    there = populate(database, home)
    log = remote("jobs", "log", str(there.known["job_id"]))
    assert log.out == "import: demo:smollm2\nit went wrong\n"
    lines = json.loads(remote("jobs", "log", str(there.known["job_id"]), "--json").out)
    assert [line["number"] for line in lines] == [1, 2]
    assert remote("jobs", "log", str(there.known["job_id"]), "--attempt", "7").code == 2
    followed = remote("jobs", "log", str(there.known["job_id"]), "--follow")
    assert followed.code == 1
    assert "it went wrong" in followed.err


@on_sqlite
def test_engines_are_found_by_name_by_id_and_by_its_start(remote: RemoteCommand, database: Database) -> None:
    other = "0123456789abcdee"
    with database.writing() as session:
        add_built(session)
        add_built(session, other, "other")
    assert json.loads(remote("engines", "show", "tiny", "--json").out)["id"] == ID
    assert json.loads(remote("engines", "show", ID[:16], "--json").out)["id"] == ID
    ambiguous = remote("engines", "show", "0123")
    assert (ambiguous.code, "could be any of 2 engines" in ambiguous.err) == (2, True)
    assert (remote("engines", "show", "none").code, remote("engines", "list").code) == (2, 0)
    shown = remote("engines", "show", "other").out
    assert "one:/srv/roundhouse/engines" in shown
    assert "int4_awq g128" in shown
    listed = json.loads(remote("engines", "list", "--json", "--size", "1").out)
    assert (listed["total"], len(listed["items"])) == (2, 1)
    assert "page 1 of 2" in remote("engines", "list", "--size", "1").err


@on_sqlite
def test_engines_are_verified_and_removed_by_workers(
    remote: RemoteCommand, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.writing() as session:
        add_built(session)
    worker = ScriptedWorker(database, add_worker(database))
    with worker.doing(worker.ends("succeeded", result={"engine_id": ID, "files": 3})):
        verified = remote("engines", "verify", "tiny", "--follow")
    assert (verified.code, "files 3" in verified.out) == (0, True)
    with worker.doing(worker.ends("failed", error="model.safetensors has changed")):
        damaged = remote("engines", "verify", "tiny", "--follow")
    assert (damaged.code, "has changed" in damaged.err) == (1, True)
    monkeypatch.setattr("typer.confirm", lambda question, **_: "one, by http://127.0.0.1" not in question)
    assert remote("engines", "remove", "tiny").code == 1
    assert remote("engines", "remove", "tiny", "--yes", "--json").code == 0
    with database.reading() as session:
        assert session.scalars(select(Job.kind).order_by(Job.id)).all() == ["verify", "verify", "remove"]


@on_sqlite
def test_a_deployment_from_its_start_to_the_end_of_its_row(remote: RemoteCommand, database: Database, tmp_path: Path) -> None:
    with database.writing() as session:
        add_built(session)
    worker = ScriptedWorker(database, add_worker(database))
    key = tmp_path / "key"
    key.write_text("sk-of-mine\n")
    options = ["--name", "mine", "--override", "max_batch_size=4", "--api-key-file", str(key), "--json"]
    started = json.loads(remote("deployments", "start", "tiny", *options).out)
    deployment = started["deployment_id"]
    with database.reading() as session:
        row = session.get_one(Deployment, deployment)
        assert (row.settings["overrides"]["max_batch_size"], row.settings["keyed"], row.host) == (4, True, HOST)
        assert "sk-of-mine" not in json.dumps(row.settings)
    shown = remote("deployments", "show", "mine").out
    assert deployment in shown
    assert "starting" in shown
    assert "ended" not in remote("deployments", "list").out
    with worker.doing(worker.ends("succeeded")):
        assert remote("deployments", "stop", "mine", "--follow").code == 0
    assert remote("deployments", "forget", deployment, "--yes").code == 2  # its host has not told that it ended
    with database.writing() as session:
        session.get_one(Deployment, deployment).state = "stopped"
    assert remote("deployments", "forget", deployment, "--yes").code == 0
    assert remote("deployments", "show", deployment).code == 2
    wrong = remote("deployments", "start", "tiny", "--override", "max_batch=4")
    assert (wrong.code, "max_batch" in wrong.err) == (2, True)


@on_sqlite
def test_what_a_deployment_does_and_says(remote: RemoteCommand, database: Database) -> None:
    with database.writing() as session:
        add_built(session)
        add_deployment(session, "aaaaaaaa", engine_id=ID, host=HOST, home=HOME, openai="http://127.0.0.1:9000/v1")
        add_samples(session)
        add_lines(session, "aaaaaaaa", "ready", "steady")
    shown = remote("deployments", "show", "aaaa").out
    assert "2 running, 1 waiting" in shown
    assert "http://127.0.0.1:9000/v1" in shown
    assert remote("deployments", "log", "aaaaaaaa").out == "ready\nsteady\n"


@on_sqlite
def test_drills_integrity_and_workers(remote: RemoteCommand, database: Database, home: Home) -> None:
    populate(database, home)
    assert "page 7 should carry its tag 4" in remote("integrity").out
    assert json.loads(remote("integrity", "--kind", "content", "--json").out)["events"]["total"] == 0
    assert HOST in remote("workers").out
    assert json.loads(remote("drill", "--seed", "1", "--steps", "10", "--json").out)["state"] == "queued"
    assert remote("drill", "--fault", "nonsense").code == 2
    worker = ScriptedWorker(database, add_worker(database, "two"))
    failure = {"fault": None, "guard": "tags", "guard_sample": None, "seed": 1, "steps": 9, "why": "it leaked"}
    counts = {"seed": 1, "steps": 9, "grants": 8, "faults": 1, "preemptions": 0, "cached_tokens": 0}
    report = {**counts, "engine": None, "passed": False, "kinds": [], "failures": [failure]}
    with worker.doing(worker.ends("failed", result=report, error="the drill failed: see its report")):
        drilled = remote("drill", "--follow")
    assert drilled.code == 1
    assert "1 faults were put into 8 granted pages" in drilled.out
    assert "the drill failed" in drilled.err


@on_sqlite
def test_benchmarks(remote: RemoteCommand, database: Database, home: Home) -> None:
    there = populate(database, home).known
    run = str(there["benchmark_id"])
    listed = remote("bench", "list", "--text", "tiny")
    assert (listed.code, run in listed.out, "128 in, 64 out" in listed.out) == (0, True, True)
    assert remote("bench", "list", "--state", "failed").out == "No benchmark runs.\n"
    shown = remote("bench", "show", run[:8]).out
    assert "roundhouse bench tiny-bf16-bf16 --concurrency 1,8,16,32" in shown
    assert json.loads(remote("bench", "show", run, "--json").out)["levels"][0]["concurrency"] == 1
    asked = json.loads(remote("bench", ID, "--concurrency", "1,4", "--prefill", "64", "--json").out)
    assert (asked["kind"], asked["payload"]["wish"]["concurrencies"], asked["host"]) == ("benchmark", [1, 4], HOST)
    assert asked["payload"]["wish"]["prefill_lengths"] == [64]
    bare = remote("bench", "aaaaaaaa", "--deployment", "--bare")
    assert (bare.code, "the bare loop is an engine's" in bare.err) == (2, True)
    wrong = remote("bench", ID, "--concurrency", "many")
    assert (wrong.code, "these are no numbers" in wrong.err) == (2, True)
    worker = ScriptedWorker(database, add_worker(database, "two"))
    with worker.doing(worker.ends("failed", result={"benchmark_id": run}, error="the endpoint went away")):
        followed = remote("bench", "http://gpu:8000", "--model", "llama", "--served-by", "vLLM", "--follow")
    assert (followed.code, "at once" in followed.out, "the endpoint went away" in followed.err) == (1, True, True)
    assert remote("bench", "remove", run, "--yes").code == 0
    assert remote("bench", "show", run).code == 2


@on_sqlite
def test_an_endpoints_key_is_named_and_not_typed(
    remote: RemoteCommand, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("bench", "https://gpu.example/v1", "--api-key-variable", "MY_KEY", "--json")
    assert "MY_KEY is not set" in remote(*words).err
    monkeypatch.setenv("MY_KEY", "sk-secret-of-mine")
    asked = remote(*words)
    assert (asked.code, "sk-secret-of-mine" in asked.out + asked.err) == (0, False)
    with database.reading() as session:
        job = session.scalars(select(Job)).one()
    assert (job.sealed is not None, job.payload["wish"]["api_key_variable"]) == (True, "ROUNDHOUSE_ENDPOINT_API_KEY")


@on_sqlite
def test_evaluations(remote: RemoteCommand, database: Database, home: Home) -> None:
    there = populate(database, home).known
    evaluation = str(there["evaluation_id"])
    assert evaluation in remote("evaluate", "list", "--gate", "passed").out
    assert remote("evaluate", "list", "--gate", "failed").out == "No evaluations.\n"
    assert "arithmetic" in remote("evaluate", "show", evaluation[:8]).out
    asked = json.loads(remote("evaluate", ID, "--tasks", "perplexity,needle", "--limit", "5", "--json").out)
    assert (asked["kind"], asked["payload"]["wish"]["tasks"]) == ("evaluate", ["perplexity", "needle"])
    worker = ScriptedWorker(database, add_worker(database, "two"))
    with worker.doing(worker.ends("succeeded", result={"evaluation_id": evaluation, "gate": "passed"})):
        followed = remote("evaluate", "http://gpu:8000", "--follow", "--json")
    assert json.loads(followed.out)["gate"] == "passed"
    assert remote("evaluate", "remove", evaluation, "--yes").code == 0
    assert evaluation not in remote("evaluate", "list").out


@on_sqlite
def test_who_may_not_is_told_so(run_main: RemoteCommand, console: str, database: Database, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(token_of(database, "viewer"))
    token.chmod(0o600)
    viewer = ["--server", console, "--token-file", str(token)]
    assert run_main(*viewer, "jobs", "list").code == 0
    refused = run_main(*viewer, "build", "demo:smollm2")
    assert (refused.code, "needs the role operator" in refused.err) == (2, True)
    token.write_text("rh_of-nobody")
    unknown = run_main(*viewer, "jobs", "list")
    assert (unknown.code, "does not know this token" in unknown.err) == (2, True)
    assert "rh_of-nobody" not in unknown.err


@on_sqlite
def test_a_request_that_is_sent_twice_does_its_work_once(
    remote: RemoteCommand, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after the console has done what was asked, and before its answer came."""
    import httpx

    sent, send = [], httpx.Client.send

    def lose_the_first(self: httpx.Client, request: httpx.Request) -> httpx.Response:
        answer = send(self, request)
        sent.append(request.headers["idempotency-key"])
        if len(sent) == 1:
            raise httpx.ReadError("the connection was reset")
        return answer

    monkeypatch.setattr(httpx.Client, "send", lose_the_first)
    assert remote("build", "demo:smollm2").code == 0
    assert len(sent) == 2
    assert sent[0] == sent[1]
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 1
        assert session.scalar(select(func.count()).select_from(AuditEntry).where(AuditEntry.action == "build")) == 1


@on_sqlite
def test_ctrl_c_ends_the_showing_and_not_the_work(
    remote: RemoteCommand, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roundhouse.console.remote import following

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following.time, "sleep", interrupt)
    stopped = remote("build", "demo:smollm2", "--follow")
    assert stopped.code == 130
    assert "job 1 goes on" in stopped.err
    with database.reading() as session:
        assert session.get_one(Job, 1).state == "queued"


@on_sqlite
@pytest.mark.parametrize(("command", "known"), [("bench", "benchmark_id"), ("evaluate", "evaluation_id")])
def test_removing_what_was_measured_asks_first(
    remote: RemoteCommand, database: Database, home: Home, monkeypatch: pytest.MonkeyPatch, command: str, known: str
) -> None:
    id_ = str(populate(database, home).known[known])
    asked: list[str] = []
    monkeypatch.setattr("typer.confirm", lambda question, **_: asked.append(question))  # no
    assert remote(command, "remove", id_[:8]).code != 0
    assert id_ in asked[0]
    assert f"and from {HOST}" in asked[0]
    assert remote(command, "show", id_).code == 0
