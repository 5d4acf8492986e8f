"""``transformers.generate`` for the bench: one process with one model, asked by lines of JSON, ended by the end of its input.

    python transformers_child.py CHECKPOINT DTYPE

The weights are the engine's, dequantized and rounded to bf16 once; DTYPE is what is computed in. Everything else is as
transformers does it by itself.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from roundhouse.build.kv_scales import KvScaleReport
from roundhouse.build.reference import plain_model


def main() -> None:
    """Load, say so, then answer line by line."""
    checkpoint, dtype = sys.argv[1:]
    model = plain_model(Path(checkpoint), KvScaleReport(state="not used"), getattr(torch, dtype))
    _say(attention=model.config._attn_implementation, threads=torch.get_num_threads())
    for line in sys.stdin:
        asked = json.loads(line)
        ids = torch.tensor(asked["prompts"])
        began = time.perf_counter()
        # Without an end-of-sequence token every answer has its full length, and nobody has to look for one.
        answers = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=asked["new_tokens"],
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        _say(seconds=time.perf_counter() - began, output_tokens=answers.numel() - ids.numel())


def _say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
