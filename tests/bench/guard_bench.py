"""One run over everything that the page check costs: alone, in a step, and to whoever waits for tokens."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from guard_bare import Bare, bare
from guard_episodes import OFF, Episode, interleaved, play
from guard_ratios import Ratios, conclusion, ratios
from guard_report import bare_table, ratio_table, share_table
from guard_share import GuardClock, Share, clocked_loop, share
from machine import describe, idle_cores, machine_line

from roundhouse.build.engine import Engine
from roundhouse.build.hardware import this_machine
from roundhouse.build.home import home_of
from roundhouse.build.recipe import GUARD_SAMPLE, Guard
from roundhouse.build.terminal import answer_console
from roundhouse.plugins.native_interface import load_kernels
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.settings import EngineSettings, Overrides

__all__ = ["GuardBench", "prompt_tokens"]

LEVELS: tuple[Guard, ...] = ("tags", "tags+content")
_WARM_TOKENS = 4
_IDLE_S = 3.0
_BARE_CALLS = 500
_MOST_TOGETHER = 1024
"""Tokens of the prompts of an episode, all together: it is about decoding, and there are many of them."""


class GuardBench:
    """One run.

    Args:
        engine: whose weights.
        concurrency: requests at once where a step is taken apart, each of these.
        interleaved: requests at once where levels take turns, each of these.
        input_tokens: of each prompt, random ones.
        output_tokens: of each answer, and steps that are taken apart.
        rounds: how often every level has its turn.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        concurrency: Sequence[int],
        interleaved: Sequence[int],
        input_tokens: int,
        output_tokens: int,
        rounds: int,
    ) -> None:
        self._engine = engine
        self._concurrency = concurrency
        self._interleaved = interleaved
        self._input_tokens = input_tokens
        self._output_tokens = output_tokens
        self._rounds = rounds

    def run(self) -> dict[str, Any]:
        """Everything, from loading to the printed tables; returns what was seen."""
        console = answer_console()
        with self._engine.held():
            first = create_loop(self._engine, self._settings(OFF))
            machine = describe(first) | {"idle cores": idle_cores(_IDLE_S)}
            alone = bare(load_kernels(home_of(self._engine.folder).kernels), calls=_BARE_CALLS)
            console.print(bare_table(alone))
            shares = list(self._shares(first))
            console.print(share_table(shares))
            episodes = list(self._episodes(first))
        found = [ratios(episodes, level, concurrency) for concurrency in self._interleaved for level in LEVELS]
        console.print(ratio_table(episodes, found))
        sentences = [conclusion(each) for each in found]
        console.print(*sentences, self._line(), machine_line(machine), sep="\n", markup=False, soft_wrap=True)
        return self._report(machine, alone, shares, episodes, found) | {"conclusions": sentences}

    def _shares(self, first: EngineLoop) -> Iterator[Share]:
        """Take steps apart on loops of their own: what is compared with the check off is not clocked."""
        clock = GuardClock()
        loops = {level: self._clocked(first, level, clock) for level in LEVELS}
        for concurrency in self._concurrency:
            for level, loop in loops.items():
                _say(f"a step taken apart, {concurrency} at once, {level}")
                share(level, loop, clock, self._prompts("warm", concurrency, self._input_tokens), steps=_WARM_TOKENS)
                prompts = self._prompts("share", concurrency, self._input_tokens)
                yield share(level, loop, clock, prompts, steps=self._output_tokens)
                loop.forget_prefixes()

    def _episodes(self, first: EngineLoop) -> Iterator[Episode]:
        loops: dict[Guard, EngineLoop] = {OFF: first} | {level: self._loop(first, level) for level in LEVELS}
        for concurrency in self._interleaved:
            size = prompt_tokens(self._input_tokens, concurrency)
            for loop in loops.values():
                play(loop, self._prompts("warm", concurrency, size), _WARM_TOKENS)
            prompts = [self._prompts(str(number), concurrency, size) for number in range(self._rounds)]
            for each in interleaved(loops, prompts.__getitem__, self._output_tokens, self._rounds):
                cell = each.cell
                done = f"round {cell.repeat + 1}, {concurrency} at once, {cell.system}"
                _say(f"{done}: {cell.tokens_per_s:.1f} tokens/s, others took {cell.others:.2f} cores")
                yield each

    def _loop(self, first: EngineLoop, level: Guard) -> EngineLoop:
        """A loop on the first one's runtime: its pages are the same ones, so only one loop may have requests at a time."""
        return EngineLoop(first._runtime, self._settings(level), first._tokenizer, vocab=self._vocab)

    def _clocked(self, first: EngineLoop, level: Guard, clock: GuardClock) -> EngineLoop:
        return clocked_loop(first._runtime, self._settings(level), first._tokenizer, vocab=self._vocab, clock=clock)

    def _settings(self, level: Guard) -> EngineSettings:
        most = max(*self._concurrency, *self._interleaved)
        page = self._engine.manifest.recipe.page_tokens
        room = self._input_tokens + self._output_tokens + page
        overrides = Overrides(
            guard=level,
            guard_sample=GUARD_SAMPLE if level == "tags+content" else None,
            max_batch_size=most,
            kv_cache_tokens=2 * most * room,  # so that nobody waits for pages
        )
        return EngineSettings.for_engine(self._engine, overrides, free_memory=this_machine().free_memory)

    @property
    def _vocab(self) -> int:
        return self._engine.manifest.plan.shape.vocab

    def _prompts(self, purpose: str, concurrency: int, size: int) -> list[list[int]]:
        """Random token ids, the same for every level, and new for each purpose: no prefix is ever found."""
        draw = random.Random(f"{purpose}, {concurrency}")
        return [[draw.randrange(self._vocab) for _ in range(size)] for _ in range(concurrency)]

    def _line(self) -> str:
        engine = self._engine.manifest
        return (
            f"engine {engine.name} ({engine.id}), weights {engine.recipe.weights}, KV cache {engine.recipe.kv_cache}; "
            f"{self._input_tokens} tokens in, {self._output_tokens} out, {self._rounds} rounds"
        )

    def _report(
        self, machine: dict[str, Any], alone: list[Bare], shares: list[Share], episodes: list[Episode], found: list[Ratios]
    ) -> dict[str, Any]:
        return {
            "engine": {"id": self._engine.manifest.id, "name": self._engine.manifest.name},
            "input_tokens": self._input_tokens,
            "output_tokens": self._output_tokens,
            "rounds": self._rounds,
            "machine": machine,
            "bare": [asdict(each) for each in alone],
            "shares": [asdict(each) | {"of_step": each.of_step} for each in shares],
            "episodes": [asdict(each) | {"metrics": each.metrics, "noisy": each.cell.noisy} for each in episodes],
            "ratios": [asdict(each) for each in found],
        }


def prompt_tokens(asked: int, concurrency: int) -> int:
    """Tokens of each prompt where levels take turns: as many as asked for, while all of them together stay few."""
    return max(1, min(asked, _MOST_TOGETHER // concurrency))


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
