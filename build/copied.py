"""A checkpoint that stays as it is: an input that is quantized already, or that its target loads in 16 bits."""

from __future__ import annotations

import shutil
from pathlib import Path

from roundhouse.errors import VerifyError

from .events import OnStep
from .kv_scales import KvScaleReport
from .models.sources import Model
from .recipe import Recipe
from .verify import Verified

__all__ = ["copy_checkpoint", "has_chat_template", "stays_as_it_is"]

_BESIDE_WEIGHTS = (".jinja", ".json", ".model", ".py", ".tiktoken", ".txt")
"""Endings of what a model folder holds beside its weights, and its target needs."""


def stays_as_it_is(recipe: Recipe, *, quantized_here: bool) -> bool:
    """Whether a recipe's checkpoint is the input's own files."""
    return recipe.weights == "as_is" or (recipe.weights == "bf16" and not quantized_here)


def copy_checkpoint(model: Model, recipe: Recipe, folder: Path, on_step: OnStep) -> Verified:
    """Copy a model folder's weights, configs and tokenizer.

    Args:
        model: the input.
        recipe: whose KV cache decides what is said of its scales.
        folder: the new checkpoint; it is made.
        on_step: told bytes that are copied, of all.

    Returns:
        Of each kind of module, layers and experts taken together, the type that its weights are stored in.

    Raises:
        VerifyError: a copy is shorter than its file.
    """
    files = [*model.checkpoint.files, *(path.name for path in model.folder.iterdir() if path.suffix in _BESIDE_WEIGHTS)]
    paths = [model.folder / name for name in dict.fromkeys(files)]
    sizes = {path.name: path.stat().st_size for path in paths}
    folder.mkdir()
    copied = 0
    for path in paths:
        shutil.copyfile(path, folder / path.name)
        if (folder / path.name).stat().st_size != sizes[path.name]:
            raise VerifyError(f"{path.name} was copied with another size: did it change meanwhile?")
        copied += sizes[path.name]
        on_step(copied, sum(sizes.values()))
    modules: dict[str, set[str]] = {}
    for tensor in model.checkpoint.tensors.values():
        name, _, part = tensor.name.rpartition(".")
        if "scal" not in part:
            alike = ".".join("*" if word.isdigit() else word for word in name.split("."))
            modules.setdefault(alike, set()).add(tensor.dtype)
    became = {name: f"as it was: {', '.join(sorted(types))}" for name, types in sorted(modules.items())}
    return Verified(became, KvScaleReport(state="absent" if recipe.kv_cache == "fp8" else "not used"))


def has_chat_template(folder: Path) -> bool:
    """Whether a tokenizer's files have a chat template. Nothing of it is loaded: it may need code of the model's own."""
    config = folder / "tokenizer_config.json"
    return (folder / "chat_template.jinja").exists() or (config.exists() and '"chat_template"' in config.read_text())
