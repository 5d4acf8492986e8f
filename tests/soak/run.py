"""A long run: clients of every kind against two engines on one server, one of them loaded anew again and again.

    python tests/soak/run.py --minutes 60 --reloads 100

It fails unless, at the end, every page is back, nothing is left of what came and went, memory is flat, no tag was found
wrong, tokens come out, and no request ended in a way that it should not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from measuring import Memory, flatness_problem, metrics_of, shared_memory, stack
from traffic import Traffic

from roundhouse.build.engine import Engine, write_manifest
from roundhouse.build.home import Home
from roundhouse.build.pipeline import build
from roundhouse.build.recipe import recipe_from
from roundhouse.errors import ServeError
from roundhouse.serve.deployment import Deployment, Ports
from roundhouse.serve.settings import Overrides
from roundhouse.serve.triton.control import ModelControl

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import write_tiny_model  # the models of the tests

STEADY, CHANGING = "steady", "changing"
CLIENTS = 24
KV_TOKENS = 768
"""Less than the requests of a full batch want."""
PRESSURE = ("preemptions_total", "cached_tokens_total")
LONGEST = 120
SAMPLE_PERIOD_S = 2.0
KILL_EVERY = 10
"""One in so many reloads is a kill -9 instead. Of the others, every second one has a load that fails before it."""
MOST_GROWTH = {
    "triton": 32 * 2**20,
    f"stub {STEADY}": 32 * 2**20,
    f"engine {STEADY}": 48 * 2**20,
    "front and clients": 64 * 2**20,
}
"""Bytes, over a whole run, after its first fifth."""


def main() -> int:
    """Run, print what was seen as JSON, and say whether it was well."""
    options = argparse.ArgumentParser(description="A long run against a real server.")
    options.add_argument("--minutes", type=float, default=60.0)
    options.add_argument("--reloads", type=int, default=100, help="how often an engine is unloaded and loaded again")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        report = asyncio.run(Soak(Path(folder), given.minutes * 60, given.reloads, given.seed).run())
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["problems"] else 0


class Soak:
    """One run.

    Args:
        folder: for the engines.
        seconds: how long clients ask.
        reloads: how often the changing engine is loaded anew meanwhile.
        seed: of everything random.
    """

    def __init__(self, folder: Path, seconds: float, reloads: int, seed: int) -> None:
        self._folder = folder
        self._seconds = seconds
        self._reloads = reloads
        self._seed = seed
        self._memory = Memory()
        self._done = self._failed_loads = 0
        self._faults: list[str] = []
        self._log: list[str] = []

    async def run(self) -> dict[str, Any]:
        """Everything, from building the engines to the report."""
        engines = _engines(self._folder)
        overrides = Overrides(kv_cache_tokens=KV_TOKENS, max_batch_size=16)
        ports = Ports(http=0, grpc=0, metrics=0, openai=0)
        home = Home(self._folder / "home")
        with Deployment(engines, home, ports=ports, overrides=overrides, control=True, on_log=self._take_line) as deployment:
            traffic = Traffic(deployment.endpoints, always_there={STEADY}, longest=LONGEST, seed=self._seed)
            async with httpx.AsyncClient(trust_env=False) as http:
                before = await self._state(http, deployment)
                clients = asyncio.create_task(traffic.run(CLIENTS))
                await self._change_and_sample(deployment, clients)
                traffic.stop()
                await clients
                after = await self._settled(http, deployment, before)
                seen = (await metrics_of(http, deployment.endpoints.metrics))[STEADY]
        problems = _differences(before, after) + self._faults + [f"request: {fault}" for fault in traffic.faults[:20]]
        problems += [f"never seen: {what}" for what in traffic.never_seen()]
        problems += [f"{name} stayed 0: the pool was not under pressure" for name in PRESSURE if not seen[name]]
        for name, most in MOST_GROWTH.items():
            problem = flatness_problem(name, self._memory.series[name], most=most)
            problems += [problem] if problem else []
        if self._done < self._reloads:
            problems.append(f"only {self._done} of {self._reloads} reloads were done")
        if problems:
            problems += [f"log: {line}" for line in self._log[-20:]]
        return {
            "minutes": round(self._seconds / 60, 1),
            "reloads": self._done,
            "failed loads": self._failed_loads,
            "requests": sum(traffic.counts.values()),
            "outcomes": dict(sorted(traffic.counts.items())),
            "memory_mib": self._memory.summary(),
            "under pressure": {name: int(seen[name]) for name in PRESSURE},
            "before": before,
            "after": after,
            "problems": problems,
        }

    def _take_line(self, line: str) -> None:
        if "rror" in line or "ended" in line or "mismatch" in line:
            self._log = [*self._log[-200:], line]

    async def _change_and_sample(self, deployment: Deployment, clients: asyncio.Task[None]) -> None:
        """Load the changing engine anew, evenly over the time, and look at the processes on the way."""
        began = time.monotonic()
        changes = asyncio.create_task(self._change(deployment, began))
        while time.monotonic() - began < self._seconds or not changes.done():
            if clients.done():
                break
            self._memory.sample(stack())
            await asyncio.sleep(SAMPLE_PERIOD_S)
        await changes

    async def _change(self, deployment: Deployment, began: float) -> None:
        for number in range(self._reloads):
            await asyncio.sleep(max(0.0, began + self._seconds * (number + 0.5) / self._reloads - time.monotonic()))
            if number % KILL_EVERY == KILL_EVERY - 1:
                stack()[f"engine {CHANGING}"].kill()
            else:
                await asyncio.to_thread(self._reload, deployment.control, fail_first=number % 2 == 1)
            self._done += 1

    def _reload(self, control: ModelControl, *, fail_first: bool) -> None:
        control.unload(CHANGING, timeout_s=120)
        if fail_first:
            weights = next((self._folder / CHANGING).rglob("*.safetensors"))
            away = weights.rename(weights.with_suffix(".away"))
            try:
                control.load(CHANGING)
                self._faults.append("an engine without its weights was loaded")
            except ServeError:
                self._failed_loads += 1
            finally:
                away.rename(weights)
        control.load(CHANGING)

    async def _settled(self, http: httpx.AsyncClient, deployment: Deployment, before: dict[str, Any]) -> dict[str, Any]:
        """The state once it is as before, or after half a minute."""
        for _ in range(30):
            state = await self._state(http, deployment)
            if not _differences(before, state):
                break
            await asyncio.sleep(1)
        return state

    async def _state(self, http: httpx.AsyncClient, deployment: Deployment) -> dict[str, Any]:
        """Everything that must be at the end as it was at the beginning."""
        at = deployment.endpoints
        await asyncio.sleep(2)  # the engines report once a second
        metrics = await metrics_of(http, at.metrics)
        missing = [model for model in at.models if "kv_pages_free" not in metrics.get(model, {})]
        if missing:
            return {"not up": missing}
        ready = await http.get(f"{at.openai.removesuffix('/v1')}/readyz")
        state: dict[str, Any] = {"ready": ready.status_code, "shared memory": shared_memory(), "processes": sorted(stack())}
        for model in at.models:
            shown = metrics[model]
            state[model] = {
                "pages that can be had": shown["kv_pages_free"] + shown["kv_pages_cached"],
                "pages used": shown["kv_pages_used"],
                "pages quarantined": shown["kv_pages_quarantined"],
                "running": shown["requests_running"],
                "waiting": shown["requests_waiting"],
                "tag mismatches": shown["tag_mismatches_total"],
            }
        return state


def _engines(folder: Path) -> list[Engine]:
    """One tiny engine, under two names."""
    model = write_tiny_model(folder / "model", "llama")
    recipe = recipe_from({"model": str(model), "max_batch_size": 16, "max_seq_len": 512})
    built = build(recipe, Home(folder / "home"), lambda event: None).engine
    for name in (STEADY, CHANGING):
        shutil.copytree(built.folder, folder / name)
        write_manifest(folder / name, built.manifest.model_copy(update={"name": name}))
    return [Engine.open(folder / name) for name in (STEADY, CHANGING)]


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [f"{name}: {before[name]} before, {after.get(name)} after" for name in before if before[name] != after.get(name)]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ServeError as error:
        sys.exit(str(error))
