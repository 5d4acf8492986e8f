"""Plans of shipped shapes on GPUs of the table, and what their golden files say; run it to write those anew."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from roundhouse.build.models.config import shape_from_config
from roundhouse.build.models.inventory import inventory_from_shape
from roundhouse.build.models.shape import InputQuantization
from roundhouse.build.models.sources import look_up
from roundhouse.build.planner.gpus import hardware_called
from roundhouse.build.planner.plan import Plan, make_plan
from roundhouse.build.planner.view import compare_view, plan_view
from roundhouse.build.recipe import recipe_from

__all__ = ["GOLDEN", "golden_texts", "plan_of_shape", "text_of", "windowed_plan"]

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"
_LIKE_GEMMA: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 34,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}


def plan_of_shape(
    name: str,
    gpu: str,
    /,
    *,
    request_tokens: int | None = None,
    price: float | None = None,
    quantized: InputQuantization | None = None,
    **keys: Any,
) -> Plan:
    """The plan of ``shape:NAME`` on a GPU of the table, with these recipe keys; or of one that was quantized already."""
    shape, inventory = look_up(f"shape:{name}")
    if quantized is not None:
        shape = shape.model_copy(update={"quantization": quantized})
        inventory = inventory_from_shape(shape)
    recipe = recipe_from({"model": f"shape:{name}", **keys})
    return make_plan(recipe, shape, inventory, hardware_called(gpu), request_tokens=request_tokens, price_per_gpu_hour=price)


def windowed_plan(*, request_tokens: int | None = None, **keys: Any) -> Plan:
    """The plan of a model like Gemma 3, in which one of six layers remembers everything, on an L40S."""
    shape = shape_from_config(_LIKE_GEMMA, stored_dtype="bfloat16")
    recipe = recipe_from({"model": "like-gemma-3-4b", "weights": "fp8", **keys})
    return make_plan(recipe, shape, inventory_from_shape(shape), hardware_called("l40s"), request_tokens=request_tokens)


def text_of(view: RenderableType, width: int = 100, *, terminal: bool = False) -> str:
    """What a view is on a console of this width; with colours on a terminal."""
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def golden_texts() -> dict[Path, str]:
    """Every golden file of the planner's view, as it should be."""
    kimi = plan_of_shape("kimi-k2.6", "h200", tensor_parallel=8, guard="off")
    llama = plan_of_shape("llama-3.1-8b", "l40s")
    windows = plan_of_shape("gpt-oss-120b", "h200", tensor_parallel=2, guard="off", request_tokens=8192, price=3.5)
    staged = plan_of_shape("deepseek-v3", "h200", tensor_parallel=4, pipeline_parallel=2, guard="off", max_seq_len=32768)
    other = plan_of_shape("llama-3.1-8b", "l40s", kv_cache="bf16", weights="fp8", max_seq_len=8192)
    views = {
        "kimi-k2.6-8xh200.txt": plan_view(kimi),
        "llama-3.1-8b-l40s.txt": plan_view(llama),
        "gpt-oss-120b-2xh200.txt": plan_view(windows),
        "deepseek-v3-2-stages.txt": plan_view(staged),
        "llama-3.1-8b-two-recipes.txt": compare_view([llama, other]),
    }
    return {GOLDEN / name: text_of(view) for name, view in views.items()}


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for path, text in golden_texts().items():
        path.write_text(text)
        sys.stdout.write(f"{path}\n")
