"""One public task, asked through lm-evaluation-harness."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roundhouse.errors import RoundhouseError, ServeError, SetupError

from ..records import Suite
from ..scorer import Need, Scorer
from ..suites.contract import Answered, Ground, shortened
from .data import PUBLIC_TASKS, DataSource, load_split_files, require_data
from .model import harness_model
from .quiet import quiet_harness

__all__ = ["PublicTask", "public_task"]

_SHOT_SEED = 1234
"""The harness' own, for the choice of examples."""
_TOGETHER = 64
"""Questions that are asked, judged and written down together: the harness says nothing of any before it has all answers."""


def public_task(name: str, data: Path | None) -> PublicTask:
    """A public task whose data is at hand.

    Args:
        name: of :data:`PUBLIC_TASKS`.
        data: folder with data sets; None takes them from the hub.

    Raises:
        SetupError: lm-evaluation-harness is not installed.
        UsageError: the data cannot be had.
    """
    if find_spec("lm_eval") is None:
        raise SetupError(f"{name} needs lm-evaluation-harness", hint="pip install 'roundhouse-llm[evaluate]'")
    try:
        import datasets  # noqa: F401  # whether it can be: its parts and numpy are picky about one another's versions
    except ImportError as error:
        raise SetupError(f"{name} needs lm-evaluation-harness, whose data sets cannot be loaded: {error}") from None
    require_data(name, data)
    return PublicTask(name, PUBLIC_TASKS[name], data)


class PublicTask:
    """Asked and judged as the harness does by default, so that numbers are what others publish.

    Args:
        name: the harness' name of it.
        source: what it consists of.
        data: folder with data sets; None takes them from the hub.
    """

    suite: Suite = "lm-eval"
    higher_is_better = is_share = True
    compares = False

    def __init__(self, name: str, source: DataSource, data: Path | None) -> None:
        self.name = name
        self.metric = source.metric
        self._source = source
        self._data = data
        self._tasks: dict[str, Any] | None = None

    def needs(self, scorer: Scorer) -> Need:
        return "completions" if self._source.metric == "exact_match" else "likelihoods"

    def size(self, ground: Ground) -> int:
        return sum(len(numbers) for _, numbers in self._questions(ground))

    def note(self, ground: Ground) -> str:
        from importlib.metadata import version

        kind = "generated" if self.metric == "exact_match" else "likeliest choice"
        filtered = "" if self._source.filter == "none" else f", {self._source.filter}"
        return f"lm-evaluation-harness {version('lm_eval')}, its own shots and prompts, {kind}{filtered}"

    def answer(self, ground: Ground, base: Mapping[str, Any] | None) -> Iterator[Answered]:
        leaves, tasks, total = list(self._source.leaves), self._loaded(), self.size(ground)
        for task in tasks.values():  # base and subject are shown the same examples
            task.set_fewshot_seed(seed=_SHOT_SEED)
        done = 0
        for leaf, numbers in self._questions(ground):
            subject = leaf.removeprefix(f"{self.name}_") if len(leaves) > 1 else None
            for first in range(0, len(numbers), _TOGETHER):
                some = numbers[first : first + _TOGETHER]
                progress = _part_of(ground.progress, done, len(some), total)
                for sample in self._samples(harness_model(ground.scorer, progress), leaf, some):
                    yield _answered(sample, int(sample["doc_id"]) * len(leaves) + leaves.index(leaf), subject, self.metric)
                done += len(some)

    def _questions(self, ground: Ground) -> list[tuple[str, range]]:
        """Of each of the harness' own tasks, the numbers of the questions that are asked."""
        most = None if ground.limit is None else math.ceil(ground.limit / len(self._source.leaves))
        with _failures():
            return [(leaf, range(len(task.eval_docs))[:most]) for leaf, task in self._loaded().items()]

    def _samples(self, model: Any, leaf: str, numbers: range) -> list[dict[str, Any]]:
        """What the harness says of each of these questions."""
        with _failures():
            from lm_eval.evaluator import evaluate

            # Not simple_evaluate: it spends half a minute on its list of all tasks and on a report about this machine.
            found = evaluate(
                model,
                {"tasks": {leaf: self._loaded()[leaf]}, "groups": {}},
                samples={leaf: list(numbers)},
                bootstrap_iters=0,
                log_samples=True,
            )
            return [sample for sample in found["samples"][leaf] if sample["filter"] == self._source.filter]

    def _loaded(self) -> dict[str, Any]:
        """The harness' own tasks, as it configures them, on the data that is at hand."""
        if self._tasks is None:
            with _failures():
                self._tasks = self._load()
        return self._tasks

    def _load(self) -> dict[str, Any]:
        import lm_eval.tasks
        from lm_eval.api.task import ConfigurableTask
        from lm_eval.tasks._yaml_loader import load_yaml

        folder = Path(lm_eval.tasks.__file__).parent / self._source.folder

        @cache
        def load(place: str) -> Any:
            return load_split_files(self._data / place if self._data else Path(place), self._source.splits)

        tasks = {}
        for leaf, place in self._source.leaves.items():
            config = load_yaml(folder / f"{leaf}.yaml")
            own = {} if self._data is None else {"custom_dataset": partial(_ignoring_options, load, place)}
            task = ConfigurableTask(config={key: value for key, value in config.items() if key != "tag"} | own)
            if task.get_config("num_fewshot") is None:
                task.set_config(key="num_fewshot", value=0)
            tasks[leaf] = task
        return tasks


@contextmanager
def _failures() -> Iterator[None]:
    """Around whatever the harness does: quiet, and with its many ways to fail told in one."""
    try:
        with quiet_harness():
            yield
    except RoundhouseError:
        raise
    except Exception as error:  # the harness and its data sets fail in many ways: the other tasks go on
        raise ServeError(f"lm-evaluation-harness failed: {type(error).__name__}: {str(error)[:300]}") from error


def _part_of(progress: Callable[[float], None], done: int, some: int, total: int) -> Callable[[float], None]:
    return lambda fraction: progress((done + fraction * some) / total)


def _ignoring_options(load: Callable[[str], Any], place: str, **_: Any) -> Any:
    return load(place)


def _answered(sample: Mapping[str, Any], number: int, subject: str | None, metric: str) -> Answered:
    arguments = sample["arguments"]
    first = next(iter(arguments.values())) if isinstance(arguments, dict) else arguments[0]
    asked = next(iter(first.values())) if isinstance(first, dict) else first[0]
    responses = sample["filtered_resps"]
    if metric == "exact_match":
        said = sample["resps"][0][0]
    else:  # log-likelihoods of the choices
        chances = [float(each[0]) for each in responses]
        said = f"choice {chances.index(max(chances))}"
    return Answered(
        number, float(sample[metric]), shortened(str(asked)), shortened(str(said)), str(sample["target"]), part=subject
    )
