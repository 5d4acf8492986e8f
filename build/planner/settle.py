"""What a recipe leaves open, decided in one place and said aloud."""

from __future__ import annotations

from typing import Any

from ..hardware import Hardware
from ..models.shape import ModelShape
from ..recipe import Recipe
from .support import allowed_page_tokens, traits_of

__all__ = ["settle"]


def settle(recipe: Recipe, shape: ModelShape, hardware: Hardware) -> tuple[Recipe, list[str]]:
    """The recipe with its open keys decided for this model and hardware, and a sentence for each decision.

    Only keys that the user left out are touched: the target, where a GPU is planned for; weights, where the input is
    quantized already; the page size, where the target takes another one than ours.
    """
    given, decided, said = recipe.model_fields_set, dict[str, Any](), []
    target = recipe.target
    if "target" not in given and hardware.kind == "cuda":
        target = decided["target"] = "trtllm-pytorch"
        said.append("target trtllm-pytorch, because a GPU is planned for and no target is named")
    if "weights" not in given and shape.quantization is not None:
        decided["weights"] = "as_is"
        said.append(f"weights as_is, because the input is quantized already ({shape.quantization.name})")
    rule = allowed_page_tokens(target, shape, hardware)
    if "page_tokens" not in given and rule is not None:
        usual = traits_of(target).page_tokens
        decided["page_tokens"] = usual if usual in rule[0] else rule[0][0]
        if decided["page_tokens"] != usual:
            said.append(f"pages of {decided['page_tokens']} tokens, because {rule[1]}")
    return (recipe.model_copy(update=decided) if decided else recipe), said
