"""The recipe: what the user wants, frozen once read."""

from __future__ import annotations

import difflib
import re
import reprlib
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, ValidationInfo, field_validator, model_validator

from roundhouse.errors import RecipeError

from .recipe_yaml import is_manageable, parse_yaml

__all__ = ["GUARD_SAMPLE", "Calibration", "Guard", "KvCache", "Recipe", "Target", "Weights", "read_recipe", "recipe_from"]

Target = Literal["torch", "tensorrt", "trtllm-pytorch"]
Weights = Literal["bf16", "fp8", "int4_awq", "w4a8_awq", "nvfp4", "as_is"]
KvCache = Literal["bf16", "fp8"]
Guard = Literal["off", "tags", "tags+content"]
GUARD_SAMPLE = 0.02
"""``guard_sample`` when a recipe with ``guard: tags+content`` has none."""


_ENDLESS = 2**63
"""Whole numbers from here on would end in arithmetic that floats cannot follow."""


class _Keys(BaseModel):
    """Keys of a recipe, checked as they come from YAML."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError("it takes neither true nor false")
        return value

    @field_validator("*")
    @classmethod
    def _no_number_is_endless(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) >= _ENDLESS:
            raise ValueError("nothing is so large")
        return value


class Calibration(_Keys):
    """Which text the quantizer sees, and how much work it spends.

    ``samples`` windows of ``tokens`` tokens each; AWQ searches its scales in steps of ``alpha_step``
    (0.1 is ModelOpt's default; 0.2 costs about half of it). ``text`` is a UTF-8 file; absent, a
    public-domain text that ships with Roundhouse is used. ``arithmetic`` is what calibration and
    measurement compute in: ``auto`` is bfloat16 where the CPU has it, else float32, which takes twice
    the memory and a fraction of the time. Weights are stored the same way.
    """

    text: Path | None = None
    samples: int = Field(default=4, ge=1)
    tokens: int = Field(default=96, ge=8)
    alpha_step: float = Field(default=0.2, gt=0, le=1)
    arithmetic: Literal["auto", "bfloat16", "float32"] = "auto"


class Recipe(_Keys):
    """Everything a build needs to know. Unknown keys are errors.

    ``memory_fraction``, ``kv_cache_bytes`` and ``kv_cache_tokens`` exclude each other. ``name``,
    ``guard``, ``page_tokens``, limits and memory keys do not change an engine's bytes on the `torch`
    target: there they are defaults that `serve` and `generate` may override.
    """

    model: str = Field(min_length=1)
    name: str | None = Field(default=None, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    target: Target = "torch"
    role: Literal["aggregated", "prefill", "decode"] = "aggregated"
    weights: Weights = "int4_awq"
    quantize_scope: Literal["all_linear", "routed_experts"] = "all_linear"
    group_size: int | Literal["auto"] = "auto"
    activations: Literal["bf16", "int8"] = "bf16"
    lm_head: Literal["bf16"] = "bf16"
    kv_cache: KvCache = "fp8"
    kv_layout: Literal["auto", "plain", "flashmla-fp8"] = "auto"
    page_tokens: int = Field(default=16, ge=1)
    tensor_parallel: int = Field(default=1, ge=1)
    pipeline_parallel: int = Field(default=1, ge=1)
    expert_parallel: int = Field(default=1, ge=1)
    attention_data_parallel: bool = False
    max_batch_size: int = Field(default=32, ge=1)
    max_seq_len: int | None = Field(default=None, ge=1)
    max_num_tokens: int = Field(default=1024, ge=1)
    memory_fraction: float | None = Field(default=None, gt=0, le=1)
    kv_cache_bytes: int | None = Field(default=None, ge=1)
    kv_cache_tokens: int | None = Field(default=None, ge=1)
    guard: Guard = "tags"
    guard_sample: float | None = Field(default=None, ge=0, le=1)
    calibration: Calibration = Calibration()
    seed: int = Field(default=0, ge=0, lt=2**63)
    target_options: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        given = [key for key in ("memory_fraction", "kv_cache_bytes", "kv_cache_tokens") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one")
        if self.guard_sample and self.guard != "tags+content":
            raise ValueError(f"guard_sample belongs to guard: tags+content, and guard is {self.guard}")
        if self.guard_sample == 0 and self.guard == "tags+content":
            raise ValueError("guard_sample 0 would compare no page; give a share above 0, or guard: tags")
        if self.group_size != "auto" and self.group_size < 1:
            raise ValueError(f"group_size {self.group_size} is not a positive number")
        return self


def read_recipe(path: Path) -> Recipe:
    """Read a YAML recipe file.

    Raises:
        RecipeError: the file is missing, is not a YAML mapping, repeats a key, or does not fit :class:`Recipe`.
    """
    try:
        data = parse_yaml(path.read_text())
    except FileNotFoundError:
        raise RecipeError(f"recipe {path} does not exist") from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise RecipeError(f"recipe {path} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise RecipeError(f"recipe {path} is not a mapping of keys to values", hint="The smallest recipe is `model: FOLDER`.")
    return recipe_from(data, where=f"recipe {path}")


def recipe_from(data: dict[str, Any], *, where: str = "recipe") -> Recipe:
    """Check a mapping of recipe keys.

    Raises:
        RecipeError: with one line per wrong key; an unknown key names the nearest valid one.
    """
    if not is_manageable(data):
        raise RecipeError(f"{where} is nested too deeply or holds too much", hint="Recipes are a few keys and their values.")
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        lines = dict.fromkeys(_explain(dict(problem)) for problem in error.errors())
        raise RecipeError(f"{where}: " + "; ".join(lines)) from None


def _explain(problem: dict[str, Any]) -> str:
    path = [str(part) for part in problem["loc"]]
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        known = Calibration.model_fields if path[0] == "calibration" else Recipe.model_fields
        if key == "gpu":
            return "unknown key 'gpu' (the GPU is no part of a recipe: `plan --gpu` names it)"
        nearest = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
        return f"unknown key {key!r}" + (f" (did you mean {nearest[0]!r}?)" if nearest else "")
    if path[-1:] == ["int"] or path[-1:] == ["literal['auto']"]:  # the two forms of one key
        return f"{path[0]}: expected auto or a whole number (got {reprlib.repr(problem['input'])})"
    if problem["type"] == "literal_error":
        allowed = re.findall(r"'([^']+)'", str(problem["ctx"]["expected"]))
        nearest = difflib.get_close_matches(str(problem["input"]), allowed, n=1, cutoff=0.5)
        guess = f"; did you mean {nearest[0]!r}?" if nearest else ""
        return f"{key}: {reprlib.repr(problem['input'])} is not one of {', '.join(allowed)}{guess}"
    if problem["type"] == "missing":
        return f"the key {key!r} is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{key}: {message} (got {reprlib.repr(problem['input'])})" if key else message
