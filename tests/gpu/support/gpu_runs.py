"""Commands of a real run on a GPU, each in the Python that its target wants."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

__all__ = ["PROMPTS", "TOLERANCE", "Workbench", "sure_tokens"]

CHECKOUT = Path(__file__).parents[3]
_SCRIPT = Path(__file__).with_name("run_prompts.py")
_REFUSED = 3
"""How a command ends whose plan is refused."""

PROMPTS = {
    "capital": "The capital of France is",
    "victim": "Water boils at a temperature of one hundred degrees because",
    "counting": "One, two, three, four, five, six,",
    "long": "Alice was beginning to get very tired of sitting by her sister on the bank, " * 3,
}
TOLERANCE = 0.5
"""A token that is likelier than the second by less than this (natural logarithm) may be the other one elsewhere: kernels round
differently."""


@dataclass(frozen=True)
class Workbench:
    """A home, and the Python that runs what is in it."""

    home: Path
    python: str = sys.executable

    def roundhouse(self, *words: str) -> Any:
        """What a command answers as JSON. A plan that is refused skips the test with its reasons."""
        result = self._run("-m", "roundhouse", *words, "--home", str(self.home), "--json")
        if result.returncode == _REFUSED:
            pytest.skip(f"the plan refuses it here: {result.stderr.strip()[-400:]}")
        assert result.returncode == 0, result.stderr[-4000:]
        return json.loads(result.stdout)

    def prompts(self, folder: Path, *, max_tokens: int = 32, damaged: str | None = None) -> Any:
        """What came out of the prompts, run together through an engine's loop."""
        job = {"prompts": PROMPTS, "max_tokens": max_tokens, "damaged": damaged}
        result = self._run(str(_SCRIPT), str(folder), json.dumps(job))
        assert result.returncode == 0, result.stderr[-4000:]
        return json.loads(result.stdout.splitlines()[-1])

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        # The package of this checkout, in whichever Python: `src` has links to its rooms.
        environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src")}
        return subprocess.run([self.python, "-P", *words], env=environment, capture_output=True, text=True, check=False)


def sure_tokens(answers: Any, name: str) -> list[int]:
    """The beginning of an answer in which every token was clearly the likeliest: whoever computes the same gives the same."""
    pairs = zip(answers["tokens"][name], answers["gaps"][name], strict=True)
    return [token for token, _ in takewhile(lambda pair: pair[1] >= TOLERANCE, pairs)]
