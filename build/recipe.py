"""The recipe: what the user wants, frozen once read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from roundhouse.errors import RecipeError

__all__ = ["Calibration", "Guard", "Recipe", "Target", "Weights", "parse_yaml", "read_recipe", "recipe_from"]

Target = Literal["torch", "tensorrt", "trtllm-pytorch"]
Weights = Literal["bf16", "fp8", "int4_awq", "w4a8_awq", "nvfp4", "as_is"]
Guard = Literal["off", "tags", "tags+content"]


class Calibration(BaseModel):
    """Which text the quantizer sees, and how much work it spends.

    ``samples`` windows of ``tokens`` tokens each; AWQ searches its scales in steps of ``alpha_step``
    (0.1 is ModelOpt's default; 0.2 costs about half of it). ``text`` is a UTF-8 file; absent, a
    public-domain text that ships with Roundhouse is used. ``arithmetic`` is what calibration and
    measurement compute in: ``auto`` is bfloat16 where the CPU has it, else float32, which takes twice
    the memory and a fraction of the time. Weights are stored the same way.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Path | None = None
    samples: int = Field(default=4, ge=1)
    tokens: int = Field(default=96, ge=8)
    alpha_step: float = Field(default=0.2, gt=0, le=1)
    arithmetic: Literal["auto", "bfloat16", "float32"] = "auto"


class Recipe(BaseModel):
    """Everything a build needs to know. Unknown keys are errors.

    ``memory_fraction``, ``kv_cache_bytes`` and ``kv_cache_tokens`` exclude each other. ``name``,
    ``guard``, ``page_tokens``, limits and memory keys do not change an engine's bytes on the `torch`
    target: there they are defaults that `serve` and `generate` may override.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    target: Target = "torch"
    role: Literal["aggregated", "prefill", "decode"] = "aggregated"
    weights: Weights = "int4_awq"
    quantize_scope: Literal["all_linear", "routed_experts"] = "all_linear"
    group_size: int | Literal["auto"] = "auto"
    activations: Literal["bf16", "int8"] = "bf16"
    lm_head: Literal["bf16"] = "bf16"
    kv_cache: Literal["bf16", "fp8"] = "fp8"
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
    guard_sample: float = Field(default=0.0, ge=0, le=1)
    calibration: Calibration = Calibration()
    seed: int = Field(default=0, ge=0, lt=2**63)
    target_options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        given = [key for key in ("memory_fraction", "kv_cache_bytes", "kv_cache_tokens") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; keep one")
        if self.guard_sample and self.guard != "tags+content":
            raise ValueError(f"guard_sample belongs to guard: tags+content, and guard is {self.guard}")
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


def parse_yaml(text: str) -> Any:
    """Parse YAML with the booleans of YAML 1.2 (``off`` is a word) and without silently repeated keys.

    Raises:
        yaml.YAMLError: it is not YAML, or a key stands twice.
    """
    return yaml.load(text, Loader=_RecipeLoader)  # a SafeLoader subclass


def recipe_from(data: dict[str, Any], *, where: str = "recipe") -> Recipe:
    """Check a mapping of recipe keys.

    Raises:
        RecipeError: with one line per wrong key; an unknown key names the nearest valid one.
    """
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
        return f"{path[0]}: expected auto or a whole number (got {problem['input']!r})"
    if problem["type"] == "literal_error":
        allowed = re.findall(r"'([^']+)'", str(problem["ctx"]["expected"]))
        nearest = difflib.get_close_matches(str(problem["input"]), allowed, n=1, cutoff=0.5)
        guess = f"; did you mean {nearest[0]!r}?" if nearest else ""
        return f"{key}: {problem['input']!r} is not one of {', '.join(allowed)}{guess}"
    if problem["type"] == "missing":
        return f"the key {key!r} is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{key}: {message} (got {problem['input']!r})" if key else message


class _RecipeLoader(yaml.SafeLoader):
    """YAML lets a later key silently replace an earlier one, and PyYAML takes ``off`` for false; a recipe must not."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} cannot be a key", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_BOOLEAN = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_RecipeLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, list("tTfF"))
