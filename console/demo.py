"""`roundhouse demo`: the main job, start to end, as the console does it, with what was measured on the way.

Build, engine and deployment are recorded in the console's database; a worker beside this process does the work.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ConfigDict
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from roundhouse.build.command_options import progress_terminal
from roundhouse.build.engine import Engine
from roundhouse.build.engine_view import engine_summary
from roundhouse.build.models.sources import DEMO_MODEL
from roundhouse.build.pipeline import plan_recipe
from roundhouse.build.planner.view import plan_view
from roundhouse.build.recipe import Recipe
from roundhouse.build.store import EngineStore
from roundhouse.build.terminal import answer_console, byte_text
from roundhouse.errors import BuildError
from roundhouse.serve.addresses import Endpoints
from roundhouse.serve.benchmark.records import Benchmark
from roundhouse.serve.benchmark.store import BenchmarkStore
from roundhouse.serve.benchmark.tables import run_view
from roundhouse.serve.benchmark.workload import Workload
from roundhouse.serve.trial import PARALLEL, Trial, try_out

from .access.actor import Actor
from .access.sealing import Sealer
from .benchmarks.actions import ask_benchmark
from .benchmarks.requests import BenchmarkRequest
from .builds.actions import ask_build
from .database.database import Database
from .database.schema import open_database
from .deployments.actions import ask_deploy
from .deployments.settings import DeploymentSecrets, DeploymentSettings
from .deployments.unloading import ask_undeploy
from .jobs.following import follow
from .models import Deployment
from .models_allowed import AllowedModels
from .settings import ConsoleSettings
from .worker_beside import WorkerBeside

__all__ = ["DemoReport", "run_demo"]


class DemoReport(Trial):
    """What the demo saw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    bytes_before: int
    bytes_after: int
    kv_tokens_bf16: int
    kv_tokens_fp8: int
    top1_agreement: float
    kl: float
    benchmark: str
    """Id of the run in the history."""


def run_demo(settings: ConsoleSettings, database: Database, *, quiet: bool) -> DemoReport:
    """Plan, build, serve on Triton, ask through gRPC and the OpenAI front, stop, and write a short benchmark into the history.

    Args:
        settings: whose home the engine is kept in; a second demo finds it there.
        database: the console's; made ready here, when it is new.
        quiet: show nothing on standard output.

    Raises:
        RoundhouseError: whatever step failed says so.
    """
    console = Console(quiet=True) if quiet else answer_console()
    recipe = Recipe(model=DEMO_MODEL, name="demo", max_batch_size=16, max_seq_len=2048)
    actor = Actor(user_id=0, name=getpass.getuser(), role="admin", by="command line", address="local")

    console.rule("1  plan", align="left")
    plan = plan_recipe(recipe)
    console.print(plan_view(plan))

    open_database(database)
    with _worker(settings, database) as worker:
        console.rule("2  build", align="left")
        build = ask_build(database, actor, recipe, AllowedModels((), settings.home))
        with progress_terminal() as terminal:
            built = follow(database, build.id, terminal, meanwhile=worker.keep_running)
        engine = EngineStore(settings.home).find(str(built.engine_id))
        console.print(engine_summary(engine))

        console.rule("3  serve on Triton, page tags on", align="left")
        with _deployed(database, actor, settings, engine, worker) as endpoints:
            console.print(f"ready: Triton gRPC {endpoints.grpc}, HTTP {endpoints.http}, OpenAI {endpoints.openai}")
            console.rule("4  ask", align="left")
            trial = try_out(endpoints, engine, console)

        console.rule("5  benchmark", align="left")
        run = _benchmarked(database, actor, settings, engine, worker)
        console.print(run_view(run, BenchmarkStore(settings.home).records.find(run.id)))
    if (quality := engine.manifest.quality) is None:
        raise BuildError(f"engine {engine.manifest.id} was not measured")
    report = DemoReport(
        **trial.model_dump(),
        engine=engine.manifest.id,
        bytes_before=plan.base_bytes,
        bytes_after=plan.checkpoint_bytes,
        kv_tokens_bf16=plan.kv_tokens_bf16,
        kv_tokens_fp8=plan.kv_tokens,
        top1_agreement=quality.top1_agreement,
        kl=quality.kl,
        benchmark=run.id,
    )
    console.rule("6  what was measured", align="left")
    console.print(_report_table(report))
    program = _program()
    console.print(f"Everything is recorded; look at it, and deploy it again, in the browser: {program} console", markup=False)
    console.print(f"The benchmark is the first of its history: {program} bench show {run.id}", markup=False)
    console.print(f"Or serve the engine from here: {program} serve {engine.manifest.name}", markup=False)
    return report


def _program() -> str:
    """How this command is called from here: in an environment that is not activated it is on no path."""
    beside = Path(sys.executable).with_name("roundhouse")
    return os.path.relpath(beside) if shutil.which("roundhouse") is None and beside.is_file() else "roundhouse"


@contextmanager
def _worker(settings: ConsoleSettings, database: Database) -> Iterator[WorkerBeside]:
    """A worker that does what is asked for here."""
    url = database.url.render_as_string(hide_password=False)
    beside = WorkerBeside(settings, url, lambda _: None)
    beside.keep_running()
    try:
        yield beside
    finally:
        beside.stop()


@contextmanager
def _deployed(
    database: Database, actor: Actor, settings: ConsoleSettings, engine: Engine, worker: WorkerBeside
) -> Iterator[Endpoints]:
    """The engine, served for a while under a name that nobody else has."""
    wish = DeploymentSettings(engine_id=engine.manifest.id, name=f"demo-{secrets.token_hex(2)}")
    with database.writing() as session:
        row, job = ask_deploy(session, actor, wish, DeploymentSecrets(), Sealer.of(settings.home))
        deployment_id, job_id = row.id, job.id
    try:
        with progress_terminal() as terminal:
            follow(database, job_id, terminal, meanwhile=worker.keep_running)
        with database.reading() as session:
            found = session.get_one(Deployment, deployment_id).endpoints or {}
        yield Endpoints(**found)
    finally:
        with database.writing() as session:
            ending = ask_undeploy(session, actor, deployment_id).id
        follow(database, ending, lambda _: None, meanwhile=worker.keep_running)


def _benchmarked(
    database: Database, actor: Actor, settings: ConsoleSettings, engine: Engine, worker: WorkerBeside
) -> Benchmark:
    """The engine's bare loop, measured briefly: what makes load over HTTP is a download of its own."""
    wanted = BenchmarkRequest(
        engine_id=engine.manifest.id,
        driver="loop",
        workload=Workload(input_tokens=64, output_tokens=32, requests_each=1, least_requests=2),
        concurrencies=(1, PARALLEL),
        repeats=2,
    )
    with database.writing() as session:
        job_id = ask_benchmark(session, actor, wanted, Sealer.of(settings.home)).id
    with progress_terminal() as terminal:
        done = follow(database, job_id, terminal, meanwhile=worker.keep_running)
    return BenchmarkStore(settings.home).open((done.result or {})["benchmark_id"])


def _report_table(report: DemoReport) -> Table:
    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    change = f"{byte_text(report.bytes_before)} → {byte_text(report.bytes_after)}"
    rows = [
        ("weights, before → after", change),
        ("KV tokens in the same bytes, BF16 → FP8", f"{report.kv_tokens_bf16:,} → {report.kv_tokens_fp8:,}"),
        ("next tokens that agree with the base", f"{report.top1_agreement:.1%} (KL {report.kl:.3f})"),
        ("tokens/s through the OpenAI front, alone", f"{report.tokens_per_second_alone:.1f}"),
        (f"tokens/s through the OpenAI front, {PARALLEL} at once", f"{report.tokens_per_second_parallel:.1f}"),
        ("page-tag checks", f"{report.tag_checks:,}"),
        ("page-tag mismatches", f"{report.tag_mismatches:,}"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table
