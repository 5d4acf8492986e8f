"""The console for a long time: people who read, follow, ask twice and change their minds, and a worker that is killed.

    python tests/soak/console.py --minutes 20

It fails unless, at the end, every job has ended as it may, no process and no half of a build is left, the engines that were
built are whole, the console's memory, threads and descriptors are as before, and nobody was ever told that it failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil
from measuring import Memory, flatness_problem
from real_console import wait_until
from sqlalchemy import func, select
from workshop import Workshop, workshop

from roundhouse.build.engine import Engine
from roundhouse.build.store import EngineStore
from roundhouse.console.access.tokens import add_token
from roundhouse.console.models import Job, User, Worker
from roundhouse.errors import EngineError

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import write_tiny_model  # the models of the tests

READERS = 12
PAGES = (
    "/", "/plan?model=demo:smollm2", "/builds?kind=all", "/builds/new", "/engines", "/deployments", "/playground", "/integrity",
    "/workers", "/settings", "/api/v1/jobs", "/healthz",
)  # fmt: skip
SMALL = {"max_batch_size": 2, "max_seq_len": 64, "calibration": {"samples": 1}}
"""The rest of a recipe, of which each build has its own seed."""
KILL_EVERY = 4
"""One build in so many loses its worker on the way; of the others, every second one is cancelled."""
LONGEST_BUILD_S = 20.0
"""When a worker is killed or somebody changes their mind: at most so long after the build has begun."""
MOST_GROWTH = 48 * 2**20
"""Bytes, of the console, over a whole run, after its first fifth."""
MOST_MORE = 8
"""Threads and descriptors, from before anybody came to after all have gone: pools fill on demand."""
SAMPLE_PERIOD_S = 2.0


def main() -> int:
    """Run, print what was seen as JSON, and say whether it was well."""
    options = argparse.ArgumentParser(description="A long run of the console.")
    options.add_argument("--minutes", type=float, default=20.0)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak") as name:
        folder = Path(name)
        model = write_tiny_model(folder / "models" / "tiny", "llama")
        with workshop(folder, model) as made:
            report = asyncio.run(ConsoleSoak(made, given.minutes * 60, given.seed).run())
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["problems"] else 0


class ConsoleSoak:
    """One run.

    Args:
        made: the console, new.
        seconds: how long people ask.
        seed: of everything random.
    """

    def __init__(self, made: Workshop, seconds: float, seed: int) -> None:
        self._made = made
        self._until = time.monotonic() + seconds
        self._random = random.Random(seed)
        self._answers: Counter[str] = Counter()
        self._faults: list[str] = []
        self._killed = 0

    async def run(self) -> dict[str, Any]:
        """Everything, to the report."""
        memory = Memory()
        token = self._token()
        process = self._made.console.process
        async with httpx.AsyncClient(
            base_url=self._made.url, headers={"authorization": f"Bearer {token}"}, trust_env=False, timeout=60
        ) as http:
            await asyncio.gather(*(self._read(http, PAGES) for _ in range(READERS)))  # everything is loaded, and pools are full
            before = process.num_threads(), process.num_fds()
            people = [asyncio.create_task(self._reader(http)) for _ in range(READERS)]
            builder = asyncio.create_task(self._builder(http))
            while not builder.done():
                memory.sample({"console": process})
                await asyncio.sleep(SAMPLE_PERIOD_S)
            await asyncio.gather(builder, *people)
        await asyncio.to_thread(wait_until, lambda: not self._jobs("queued", "running"), "the end of all jobs")
        await asyncio.sleep(3)  # connections close
        after = process.num_threads(), process.num_fds()
        return {
            "answers": dict(sorted(self._answers.items())),
            "jobs": self._ends(),
            "workers killed": self._killed,
            "memory_mib": memory.summary(),
            "threads and descriptors": {"before": before, "after": after},
            "problems": [*self._faults[:20], *self._left(memory, before, after)],
        }

    def _token(self) -> str:
        with self._made.database.writing() as session:
            user = session.scalars(select(User).where(User.name == "the-operator")).one()
            return add_token(session, user.id, "soak", ["read", "build"], expires_at=None)[1]

    async def _reader(self, http: httpx.AsyncClient) -> None:
        while time.monotonic() < self._until:
            newest = self._newest()
            if newest and self._random.random() < 0.3:
                await self._follow(http, newest)
            else:
                await self._read(http, [self._random.choice([*PAGES, f"/builds/{newest}"] if newest else PAGES)])
            await asyncio.sleep(self._random.random())

    async def _read(self, http: httpx.AsyncClient, pages: tuple[str, ...] | list[str]) -> None:
        for page in pages:
            answer = await http.get(page)
            self._answers[str(answer.status_code)] += 1
            if answer.status_code != 200:
                self._faults.append(f"{page}: {answer.status_code} {answer.text[:200]}")

    async def _follow(self, http: httpx.AsyncClient, job_id: int) -> None:
        """Follow a log for a moment, and leave without a word."""
        async with http.stream("GET", f"/builds/{job_id}/log/stream?attempt=1&after=0") as events:
            self._answers[f"stream {events.status_code}"] += 1
            try:
                async with asyncio.timeout(self._random.random() * 3):
                    async for _ in events.aiter_raw():
                        pass
            except TimeoutError:
                pass

    async def _builder(self, http: httpx.AsyncClient) -> None:
        """One build after the other: asked for twice with one key, and then left alone, given up, or robbed of its worker."""
        number = 0
        while time.monotonic() < self._until:
            number += 1
            wanted = {"recipe": {"model": str(self._made.model), "name": f"n{number}", "seed": number, **SMALL}}
            key = {"idempotency-key": f"key-{number}"}
            first, second = [(await http.post("/api/v1/builds", json=wanted, headers=key)).json() for _ in range(2)]
            if "id" not in first or first["id"] != second.get("id"):
                self._faults.append(f"asked twice with one key: {first}, {second}")
                return
            await self._until_state(first["id"], "running", "succeeded")
            await asyncio.sleep(self._random.random() * LONGEST_BUILD_S)
            if number % KILL_EVERY == 0:
                await asyncio.to_thread(self._kill_worker)
            elif number % 2:
                await http.post(f"/api/v1/jobs/{first['id']}/cancel")
            await self._until_state(first["id"], "succeeded", "cancelled", "interrupted", "failed")

    def _kill_worker(self) -> None:
        with self._made.database.reading() as session:
            pid = session.scalars(select(Worker.pid).order_by(Worker.started_at.desc())).first()
        if pid is not None and psutil.pid_exists(pid):
            psutil.Process(pid).kill()
            self._killed += 1

    async def _until_state(self, job_id: int, *states: str) -> None:
        await asyncio.to_thread(wait_until, lambda: self._state(job_id) in states, f"job {job_id} being {states}", 300.0)

    def _state(self, job_id: int) -> str:
        with self._made.database.reading() as session:
            return session.get_one(Job, job_id).state

    def _newest(self) -> int | None:
        with self._made.database.reading() as session:
            return session.scalar(select(func.max(Job.id)))

    def _jobs(self, *states: str) -> list[Job]:
        with self._made.database.reading() as session:
            return list(session.scalars(select(Job).where(Job.state.in_(states))))

    def _ends(self) -> dict[str, int]:
        with self._made.database.reading() as session:
            return dict(session.execute(select(Job.state, func.count()).group_by(Job.state)).all())

    def _left(self, memory: Memory, before: tuple[int, int], after: tuple[int, int]) -> list[str]:
        """What is not as it should be when all is over."""
        problems = [f"job {job.id} {job.state}: {job.error}" for job in self._jobs("failed", "queued", "running")]
        home = self._made.home
        problems += [f"left over: {path}" for path in home.engines.glob(".building/*") if path.is_dir()]
        engines = list(EngineStore(home))
        problems += [problem for engine in engines if (problem := _damage(engine))]
        if len(engines) < len(self._jobs("succeeded")):
            problems.append(f"{len(engines)} engines of {len(self._jobs('succeeded'))} builds that succeeded")
        problems += [f"never seen: a job {state}" for state in ("succeeded", "cancelled") if not self._jobs(state)]
        if growth := flatness_problem("console", memory.series["console"], most=MOST_GROWTH):
            problems.append(growth)
        for what, was, is_ in zip(("threads", "descriptors"), before, after, strict=True):
            if is_ > was + MOST_MORE:
                problems.append(f"{what}: {was} before, {is_} after")
        if others := [each.name() for each in self._made.console.process.children(recursive=True) if _builds(each)]:
            problems.append(f"still there: {others}")
        return problems


def _damage(engine: Engine) -> str:
    try:
        engine.verify()
    except EngineError as error:
        return error.message
    return ""


def _builds(process: psutil.Process) -> bool:
    try:
        return any("roundhouse.console.worker.child" in part for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    sys.exit(main())
