"""Runs prompts through an engine's loop in this interpreter, and prints what came out: ``run_prompts.py ENGINE-FOLDER JOB``.

It is started with the Python that the engine's target runs in: TensorRT-LLM's own, or ours. The job is a JSON object:
``prompts``, texts by request id; ``max_tokens``; ``damaged``, the request whose first page is given back to the pool after two
steps while it still holds it, or null.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from roundhouse.build.engine import Engine
from roundhouse.serve.engine.loop import EngineLoop
from roundhouse.serve.engine.request import Chunk, Output, Request, SamplingParams
from roundhouse.serve.free_memory import free_memory_for
from roundhouse.serve.runtimes import create_loop
from roundhouse.serve.settings import EngineSettings, Overrides

__all__ = ["run"]


def run(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Serve all prompts at once.

    Returns:
        ``tokens`` of each request; ``gaps``, by how much (natural logarithm) each token was likelier than the second likeliest;
        ``failures``, codes by request; and what the loop counted.
    """
    engine = Engine.open(folder)
    # A page that the prefix cache holds, too, would not be free when its request gives it back.
    overrides = Overrides(kv_cache_tokens=8192, prefix_reuse=False)
    settings = EngineSettings.for_engine(engine, overrides, free_memory=free_memory_for(engine))
    loop = create_loop(engine, settings)
    sampling = SamplingParams(max_tokens=job["max_tokens"], ignore_eos=True, logprobs=2)
    for name, prompt in job["prompts"].items():
        loop.submit(Request(request_id=name, prompt=prompt, sampling=sampling))
    outputs = loop.step() + loop.step()
    if (damaged := job.get("damaged")) is not None:
        loop.pool.release([loop._live[damaged].answers[0].grants[0]])
    outputs += _rest(loop)
    status = loop.status()
    chunks = [output for output in outputs if isinstance(output, Chunk)]
    return {
        "tokens": {name: [token for each in _of(name, chunks) for token in each.token_ids] for name in job["prompts"]},
        "gaps": {name: [gap for each in _of(name, chunks) for gap in _gaps(each)] for name in job["prompts"]},
        "failures": {output.request_id: output.code for output in outputs if not isinstance(output, Chunk)},
        "steps": status.steps,
        "tag_checks": status.tag_checks,
        "tag_mismatches": status.tag_mismatches,
    }


def _rest(loop: EngineLoop) -> list[Output]:
    outputs: list[Output] = []
    while loop.has_work:
        outputs += loop.step()
    return outputs


def _of(name: str, chunks: list[Chunk]) -> list[Chunk]:
    return [each for each in chunks if each.request_id == name]


def _gaps(chunk: Chunk) -> list[float]:
    return [each.top[0][1] - each.top[1][1] for each in chunk.logprobs or ()]


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(run(Path(sys.argv[1]), json.loads(sys.argv[2]))) + "\n")
