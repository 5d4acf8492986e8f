"""One run over all systems: start everything, measure by turns, profile, print."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from cells import Cell
from machine import describe, idle_cores, machine_line
from spread import TRANSFORMERS, summarize
from step_profile import StepProfile, profile
from systems import InProcess, System, ThroughTriton, Transformers
from tables import profile_table, speed_table

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import home_of
from roundhouse.build.terminal import answer_console
from roundhouse.serve.deployment import Deployment, Ports
from roundhouse.serve.engine.stages import StageClock
from roundhouse.serve.measurement.processes import look
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.settings import EngineSettings, Overrides

__all__ = ["Bench"]

WARM_TOKENS = 4
"""Every system answers so much at each concurrency before it is measured."""
IDLE_S = 3.0


class Bench:
    """One run over all systems.

    Args:
        engine: whose weights and, for ours, whose everything.
        concurrency: how many requests at once, each of these.
        input_tokens: of each prompt, random ones.
        output_tokens: of each answer.
        repeats: how often everything is measured, by turns, so that what disturbs hits all alike.
        environment: for what is not ours.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        concurrency: Sequence[int],
        input_tokens: int,
        output_tokens: int,
        repeats: int,
        environment: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._concurrency = concurrency
        self._input_tokens = input_tokens
        self._output_tokens = output_tokens
        self._repeats = repeats
        self._environment = environment
        most = max(concurrency)
        page = engine.manifest.recipe.page_tokens
        self._overrides = Overrides(
            guard="tags",
            max_batch_size=most,
            kv_cache_tokens=2 * most * (input_tokens + output_tokens + page),  # so that nobody waits for pages
        )

    def run(self) -> dict[str, Any]:
        """Everything, from loading to the printed tables; returns what was seen."""
        with self._engine.held():
            cells, machine = self._cells()
            profiles = self._profiles()
        summaries = [summarize(cells, concurrency) for concurrency in self._concurrency]
        console = answer_console()
        console.print(speed_table(summaries), profile_table(profiles, summaries))
        console.print(self._line(), machine_line(machine), sep="\n", markup=False, soft_wrap=True)
        return {
            "engine": {"id": self._engine.manifest.id, "name": self._engine.manifest.name},
            "input_tokens": self._input_tokens,
            "output_tokens": self._output_tokens,
            "repeats": self._repeats,
            "machine": machine,
            "cells": [asdict(cell) | {"tokens_per_s": cell.tokens_per_s, "noisy": cell.noisy} for cell in cells],
            "summaries": [asdict(summary) for summary in summaries],
            "profiles": [asdict(each) | {"step_ms": each.step_ms} for each in profiles],
        }

    def _cells(self) -> tuple[list[Cell], dict[str, Any]]:
        """Start all systems, measure, and end them."""
        with ExitStack() as stack:
            peers = [
                stack.enter_context(Transformers(name, self._engine.checkpoint, dtype, self._environment))
                for name, dtype in zip(TRANSFORMERS, ("bfloat16", "float32"), strict=True)
            ]
            loop = create_loop(self._engine, self._settings())
            home, ports = home_of(self._engine.folder), Ports(http=0, grpc=0, metrics=0, openai=0)
            deployment = stack.enter_context(Deployment([self._engine], home, ports=ports, overrides=self._overrides))
            systems: list[System] = [InProcess(loop), ThroughTriton(deployment.endpoints), *peers]
            for concurrency in self._concurrency:
                for system in systems:
                    system.run(self._prompts("warm", concurrency), WARM_TOKENS)
            machine = describe(loop) | {peer.name: peer.about for peer in peers} | {"idle cores": idle_cores(IDLE_S)}
            return list(self._measure(systems)), machine

    def _measure(self, systems: Sequence[System]) -> Iterator[Cell]:
        for repeat in range(self._repeats):
            for concurrency in self._concurrency:
                prompts = self._prompts(str(repeat), concurrency)
                for system in systems:
                    before = look()
                    run = system.run(prompts, self._output_tokens)
                    cell = Cell(system.name, concurrency, repeat, run, before.others(look()))
                    done = f"repeat {repeat + 1}, {concurrency} at once, {system.name}"
                    _say(f"{done}: {cell.tokens_per_s:.1f} tokens/s, others took {cell.others:.2f} cores")
                    yield cell

    def _profiles(self) -> list[StepProfile]:
        """Clock an engine loop of its own: what is measured above is not clocked."""
        clock = StageClock()
        loop = create_loop(self._engine, self._settings(), stages=clock)
        profiles = []
        for concurrency in self._concurrency:
            _say(f"profile, {concurrency} at once")
            profile(loop, clock, self._prompts("warm profile", concurrency), steps=WARM_TOKENS)
            profiles.append(profile(loop, clock, self._prompts("profile", concurrency), steps=self._output_tokens))
        return profiles

    def _line(self) -> str:
        engine = self._engine.manifest
        return (
            f"engine {engine.name} ({engine.id}), weights {engine.recipe.weights}, KV cache {engine.recipe.kv_cache}; "
            f"{self._input_tokens} tokens in, {self._output_tokens} out, repeated {self._repeats} times"
        )

    def _settings(self) -> EngineSettings:
        return EngineSettings.for_engine(self._engine, self._overrides, free_memory=this_machine().free_memory)

    def _prompts(self, purpose: str, concurrency: int) -> list[list[int]]:
        """Random token ids, the same for every system, and new for each purpose: no prefix is ever found."""
        draw = random.Random(f"{purpose}, {concurrency}")
        vocab = self._engine.manifest.plan.shape.vocab
        return [[draw.randrange(vocab) for _ in range(self._input_tokens)] for _ in range(concurrency)]


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
