"""Which of TensorRT-LLM's kernels for routed experts take which weights on which GPU, as far as 1.2.1's documents say.

``moe_config.backend`` has no automatic choice at 1.2.1: what CUTLASS, the default, does not take must be named. From the
release's deployment guides of DeepSeek R1 and gpt-oss (``1.2.1/_sources/deployment-guide/`` of the branch gh-pages, commit
58fb435eacc402f3bd177e60f592c955d2b0719d) and, for W4A8, ``fused_moe/create_moe.py``, where others fall back to CUTLASS.
"""

from __future__ import annotations

from ..hardware import Hardware
from ..models.shape import ModelShape
from ..planner.support import kernel_of
from ..recipe import Recipe

__all__ = ["moe_backend"]

_USUAL = "CUTLASS"
_OTHERS: dict[str, dict[str, str]] = {
    "fp8_block": {"10.0": "DEEPGEMM", "10.3": "DEEPGEMM"},
    "mxfp4": {"9.0": "TRITON", "10.0": "TRTLLM", "10.3": "TRTLLM"},
}
"""Kind of weights → compute capability → the backend to name, where it is not the usual one."""


def moe_backend(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> str | None:
    """The value of ``moe_config.backend``, or None for a model without routed experts."""
    if shape.moe is None:
        return None
    return _OTHERS.get(kernel_of(recipe, shape) or "", {}).get(hardware.compute_capability or "", _USUAL)
