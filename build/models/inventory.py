"""Every tensor of a model that there are no files of, from its dimensions and its family's habits."""

from __future__ import annotations

from dataclasses import replace

from roundhouse.errors import ModelError

from .exclusions import exclusion
from .families import FAMILIES, Family
from .parameters import Inventory, Parameter, part_and_split
from .shape import LatentAttention, ModelShape

__all__ = ["inventory_from_shape", "is_known_family"]


def is_known_family(shape: ModelShape) -> bool:
    """Whether the tensors of this architecture are known without its files."""
    return shape.architecture in FAMILIES


def inventory_from_shape(shape: ModelShape) -> Inventory:
    """Every tensor of a model, in the form of 16-bit weights.

    Raises:
        ModelError: the architecture's tensors are not known; its files would tell.
    """
    if not is_known_family(shape):
        raise ModelError(
            f"the tensors of {shape.architecture or shape.model_type or 'this model'} are not known without its files",
            hint=f"Give its folder with *.safetensors. Known without: {', '.join(sorted(FAMILIES))}.",
        )
    family = FAMILIES[shape.architecture]
    maker = _Maker(shape, family)
    maker.add("model.embed_tokens.weight", (shape.vocab, shape.hidden))
    maker.add("model.norm.weight", (shape.hidden,))
    if not shape.tied_embeddings:
        maker.add("lm_head.weight", (shape.vocab, shape.hidden))
    plain, mtp = tuple(range(shape.layers)), tuple(range(shape.layers, shape.layers + shape.mtp_layers))
    sparse = shape.moe.layers if shape.moe else ()
    dense = tuple(sorted({*plain} - {*sparse}))
    maker.attention(plain)
    maker.indexer(shape.indexer.layers if shape.indexer else ())
    maker.mlp(dense)
    maker.experts(sparse)
    if mtp:
        maker.mtp(mtp)
    if shape.other_params:
        maker.found.append(Parameter("vision tower", (shape.other_params,), "other", "none"))
    return Inventory(tuple(maker.found), from_files=False)


class _Maker:
    """Collects parameters, one method for each block of a layer."""

    def __init__(self, shape: ModelShape, family: Family) -> None:
        self.found: list[Parameter] = []
        self._shape, self._family = shape, family
        self._excluded = exclusion(shape.quantization)
        self._mtp = False

    def add(self, name: str, dims: tuple[int, ...], layers: tuple[int, ...] = (), copies: int = 1) -> None:
        """One kind of tensor; what it is for follows from its name. Layers that differ in what stayed 16-bit are apart."""
        if name.startswith("."):
            name = f"model.layers.*{name}"
        known = part_and_split(name)
        if known is None:
            raise AssertionError(f"{name} has no part")
        plain = Parameter(name, dims, *known, copies=copies, mtp=self._mtp)
        first = name.replace(".experts.*", ".experts.0")
        for excluded in (False, True):
            alike = tuple(layer for layer in layers if self._excluded(first.replace("*", str(layer))) is excluded)
            if alike or (not layers and self._excluded(name) is excluded):
                self.found.append(replace(plain, layers=alike, excluded=excluded))

    def attention(self, layers: tuple[int, ...]) -> None:
        """Attention and the norms of a layer."""
        norms = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
        for name in norms[: self._family.layer_norms]:
            self.add(f".{name}.weight", (self._shape.hidden,), layers)
        if self._shape.latent is None:
            self._grouped_queries(layers)
        else:
            self._latents(self._shape.latent, layers)

    def _grouped_queries(self, layers: tuple[int, ...]) -> None:
        shape, family = self._shape, self._family
        query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        for name, outputs in (("q_proj", query), ("k_proj", key), ("v_proj", key)):
            self._linear(name, outputs, shape.hidden, layers)
        self._linear("o_proj", shape.hidden, query, layers)
        if family.has_head_norms(shape):
            for name in ("q_norm", "k_norm"):
                self.add(f".self_attn.{name}.weight", (shape.head_dim,), layers)
        if family.sinks:
            self.add(".self_attn.sinks", (shape.heads,), layers)

    def _latents(self, latent: LatentAttention, layers: tuple[int, ...]) -> None:
        hidden, heads = self._shape.hidden, self._shape.heads
        query = heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
        if latent.q_lora_rank is None:
            self._linear("q_proj", query, hidden, layers)
        else:
            self._linear("q_a_proj", latent.q_lora_rank, hidden, layers)
            self.add(".self_attn.q_a_layernorm.weight", (latent.q_lora_rank,), layers)
            self._linear("q_b_proj", query, latent.q_lora_rank, layers)
        self._linear("kv_a_proj_with_mqa", latent.row_elements, hidden, layers)
        self.add(".self_attn.kv_a_layernorm.weight", (latent.kv_lora_rank,), layers)
        self._linear("kv_b_proj", heads * (latent.qk_nope_head_dim + latent.v_head_dim), latent.kv_lora_rank, layers)
        self._linear("o_proj", hidden, heads * latent.v_head_dim, layers)

    def _linear(self, name: str, outputs: int, inputs: int, layers: tuple[int, ...]) -> None:
        self.add(f".self_attn.{name}.weight", (outputs, inputs), layers)
        if name in self._family.attention_biases(self._shape):
            self.add(f".self_attn.{name}.bias", (outputs,), layers)

    def indexer(self, layers: tuple[int, ...]) -> None:
        """The indexer of sparse attention."""
        indexer, latent = self._shape.indexer, self._shape.latent
        if indexer is None or not layers:
            return
        inputs = latent.q_lora_rank if latent and latent.q_lora_rank else self._shape.hidden
        self.add(".self_attn.indexer.wq_b.weight", (indexer.heads * indexer.head_dim, inputs), layers)
        self.add(".self_attn.indexer.wk.weight", (indexer.head_dim, self._shape.hidden), layers)
        self.add(".self_attn.indexer.k_norm.weight", (indexer.head_dim,), layers)
        self.add(".self_attn.indexer.k_norm.bias", (indexer.head_dim,), layers)
        self.add(".self_attn.indexer.weights_proj.weight", (indexer.heads, self._shape.hidden), layers)

    def mlp(self, layers: tuple[int, ...]) -> None:
        """One dense MLP."""
        if layers:
            self._gated(".mlp", self._shape.intermediate, layers)

    def experts(self, layers: tuple[int, ...]) -> None:
        """Router, routed experts and shared experts."""
        moe, family, hidden = self._shape.moe, self._family, self._shape.hidden
        if moe is None or not layers:
            return
        router = ".mlp.router.weight" if family.expert_bias else ".mlp.gate.weight"
        self.add(router, (moe.experts, hidden), layers)
        if family.router_bias:
            self.add(f".{family.router_bias}", (moe.experts,), layers)
        self._gated(".mlp.experts.*", moe.intermediate, layers, moe.experts)
        if family.expert_bias:
            self.add(".mlp.experts.*.gate_up_proj_bias", (2 * moe.intermediate,), layers, moe.experts)
            self.add(".mlp.experts.*.down_proj_bias", (hidden,), layers, moe.experts)
        if moe.shared_intermediate:
            self._gated(".mlp.shared_expert" if family.shared_gate else ".mlp.shared_experts", moe.shared_intermediate, layers)
        if family.shared_gate:
            self.add(".mlp.shared_expert_gate.weight", (1, hidden), layers)

    def mtp(self, layers: tuple[int, ...]) -> None:
        """Multi-token prediction: a whole sparse layer, and what joins the last token to it."""
        shape, hidden = self._shape, self._shape.hidden
        self._mtp = True
        self.attention(layers)
        self.indexer(layers if shape.indexer else ())
        if shape.moe:
            self.experts(layers)
        else:
            self.mlp(layers)
        self.add(".eh_proj.weight", (hidden, 2 * hidden), layers)
        for name in ("enorm", "hnorm", "shared_head.norm"):
            self.add(f".{name}.weight", (hidden,), layers)
        if self._family.mtp_embeddings:
            self.add(".embed_tokens.weight", (shape.vocab, hidden), layers)
            self.add(".shared_head.head.weight", (shape.vocab, hidden), layers)
        self._mtp = False

    def _gated(self, block: str, intermediate: int, layers: tuple[int, ...], copies: int = 1) -> None:
        hidden, biased = self._shape.hidden, self._family.mlp_bias and self._shape.mlp_bias and copies == 1
        for name, outputs, inputs in (
            ("gate_proj", intermediate, hidden),
            ("up_proj", intermediate, hidden),
            ("down_proj", hidden, intermediate),
        ):
            self.add(f"{block}.{name}.weight", (outputs, inputs), layers, copies)
            if biased:
                self.add(f"{block}.{name}.bias", (outputs,), layers)
