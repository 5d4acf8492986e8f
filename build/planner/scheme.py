"""Which format each parameter takes: as written to disk, and as held in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..models.parameters import Parameter, part_and_split
from ..models.shape import InputQuantization
from ..recipe import Recipe
from .formats import BF16, FP8, NVFP4, WeightFormat, format_called, int4
from .support import Traits

__all__ = ["Scheme", "as_stored", "held_scheme", "is_quantized", "is_quantized_name", "written_scheme"]

_INPUT_SCALED_MODULES = ("o_proj", "down_proj")
"""Modules whose AWQ scale stays with them; the others' is folded into the norm before them."""


@dataclass(frozen=True)
class Scheme:
    """``routed`` for routed experts, ``linear`` for all other linears, 16 bits for everything else."""

    routed: WeightFormat
    linear: WeightFormat
    stored: bool = False
    """Whether bytes as stored in files are what counts, where there are files."""

    def format_of(self, parameter: Parameter) -> WeightFormat:
        """The format of one parameter."""
        if not parameter.is_linear or (self.stored and parameter.excluded):
            return BF16
        return self.routed if parameter.part == "routed_expert" else self.linear

    def bytes_of(self, parameter: Parameter, shape: tuple[int, ...]) -> int:
        """Bytes of a piece of ``shape`` of one parameter (the whole of it, or what one rank holds)."""
        elements = 1
        for size in shape:
            elements *= size
        if self.stored and parameter.stored_bytes is not None:
            return -(-parameter.stored_bytes * elements // max(1, parameter.elements))
        form = self.format_of(parameter)
        if form is BF16:
            return 2 * elements
        outputs, inputs = shape
        module = parameter.name.removesuffix(".weight").rpartition(".")[2]
        return form.bytes(outputs, inputs, input_scaled=module in _INPUT_SCALED_MODULES)


def is_quantized(parameter: Parameter, recipe: Recipe) -> bool:
    """Whether the recipe changes this parameter: linears of its scope; never embeddings, head, norms or routers."""
    if recipe.weights in ("bf16", "as_is") or not parameter.is_linear:
        return False
    return recipe.quantize_scope == "all_linear" or parameter.part == "routed_expert"


def is_quantized_name(name: str, shape: tuple[int, ...], recipe: Recipe) -> bool:
    """:func:`is_quantized` of one tensor of a plain checkpoint."""
    known = part_and_split(name)
    return known is not None and is_quantized(Parameter(name, shape, *known), recipe)


def written_scheme(recipe: Recipe, group: int | None) -> Scheme:
    """What ModelOpt's export writes: INT4 scales are float32, on every target."""
    return _scheme(recipe, {"int4_awq": int4(group, scale_bytes=4, input_scales=True), "fp8": FP8})


def held_scheme(recipe: Recipe, group: int | None, traits: Traits) -> Scheme:
    """What the target's runtime holds: formats without a kernel there as BF16, INT4 scales in its own type."""
    int4_held = int4(group, scale_bytes=traits.int4_scale_bytes, input_scales=True)
    return _scheme(recipe, {"int4_awq": int4_held, "fp8": BF16 if "fp8" in traits.held_as_bf16 else FP8})


def as_stored(quantization: InputQuantization | None) -> Scheme:
    """What an input is already: bytes of its files where there are files, else what its config says of its formats."""
    if quantization is None or quantization.format is None:
        return Scheme(BF16, BF16, stored=True)
    form = format_called(quantization.format, quantization.group_size)
    experts_only = quantization.format == "mxfp4"
    return Scheme(form, BF16 if experts_only else form, stored=True)


def _scheme(recipe: Recipe, formats: dict[str, WeightFormat]) -> Scheme:
    known = {"bf16": BF16, "nvfp4": NVFP4, "w4a8_awq": formats["int4_awq"], **formats}
    form = known[recipe.weights]
    return Scheme(form, BF16 if recipe.quantize_scope == "routed_experts" else form)
