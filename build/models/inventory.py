"""Every tensor of a model that there are no files of, from its dimensions and its family's habits."""

from __future__ import annotations

from dataclasses import dataclass

from roundhouse.errors import ModelError

from .parameters import Inventory, Parameter, part_and_split
from .shape import ModelShape

__all__ = ["inventory_from_shape", "is_known_family"]


@dataclass(frozen=True)
class _Family:
    """What a family's layers have beside the plain Llama layer."""

    qkv_bias: bool = False
    o_bias: bool = False
    head_norms: bool = False
    layer_norms: int = 2
    sinks: bool = False
    router_bias: str | None = None
    expert_bias: bool = False
    shared_gate: bool = False
    mtp_embeddings: bool = False
    """Whether multi-token-prediction layers store an embedding and a head of their own."""


_FAMILIES = {
    "LlamaForCausalLM": _Family(),
    "MistralForCausalLM": _Family(),
    "MixtralForCausalLM": _Family(),
    "Qwen2ForCausalLM": _Family(qkv_bias=True),
    "Qwen2MoeForCausalLM": _Family(qkv_bias=True, shared_gate=True),
    "Qwen3ForCausalLM": _Family(head_norms=True),
    "Qwen3MoeForCausalLM": _Family(head_norms=True),
    "Gemma3ForCausalLM": _Family(head_norms=True, layer_norms=4),
    "GptOssForCausalLM": _Family(qkv_bias=True, o_bias=True, sinks=True, router_bias="mlp.router.bias", expert_bias=True),
    "Glm4MoeForCausalLM": _Family(router_bias="mlp.gate.e_score_correction_bias"),
    "DeepseekV3ForCausalLM": _Family(router_bias="mlp.gate.e_score_correction_bias", mtp_embeddings=True),
    "DeepseekV32ForCausalLM": _Family(router_bias="mlp.gate.e_score_correction_bias", mtp_embeddings=True),
    "GlmMoeDsaForCausalLM": _Family(router_bias="mlp.gate.e_score_correction_bias"),
    "KimiK25ForConditionalGeneration": _Family(router_bias="mlp.gate.e_score_correction_bias"),
}


def is_known_family(shape: ModelShape) -> bool:
    """Whether the tensors of this architecture are known without its files."""
    return shape.architecture in _FAMILIES


def inventory_from_shape(shape: ModelShape) -> Inventory:
    """Every tensor of a model, in the form of 16-bit weights.

    Raises:
        ModelError: the architecture's tensors are not known; its files would tell.
    """
    if not is_known_family(shape):
        raise ModelError(
            f"the tensors of {shape.architecture or shape.model_type or 'this model'} are not known without its files",
            hint=f"Give its folder with *.safetensors. Known without: {', '.join(sorted(_FAMILIES))}.",
        )
    family = _FAMILIES[shape.architecture]
    maker = _Maker(shape, family)
    maker.add("model.embed_tokens.weight", (shape.vocab, shape.hidden))
    maker.add("model.norm.weight", (shape.hidden,))
    if not shape.tied_embeddings:
        maker.add("lm_head.weight", (shape.vocab, shape.hidden))
    plain, mtp = tuple(range(shape.layers)), tuple(range(shape.layers, shape.layers + shape.mtp_layers))
    sparse = shape.moe.layers if shape.moe else ()
    maker.attention(plain)
    maker.indexer(shape.indexer.layers if shape.indexer else ())
    maker.mlp(tuple(layer for layer in plain if layer not in sparse))
    maker.experts(sparse)
    if mtp:
        maker.mtp(mtp)
    if shape.other_params:
        maker.found.append(Parameter("vision tower", (shape.other_params,), "other", "none"))
    return Inventory(tuple(maker.found), from_files=False)


class _Maker:
    """Collects parameters, one method for each block of a layer."""

    def __init__(self, shape: ModelShape, family: _Family) -> None:
        self.found: list[Parameter] = []
        self._shape, self._family = shape, family
        self._mtp = False

    def add(self, name: str, dims: tuple[int, ...], layers: tuple[int, ...] = (), copies: int = 1) -> None:
        """One kind of tensor; what it is for follows from its name."""
        if name.startswith("."):
            name = f"model.layers.*{name}"
        known = part_and_split(name)
        if known is None:
            raise AssertionError(f"{name} has no part")
        self.found.append(Parameter(name, dims, *known, layers=layers, copies=copies, mtp=self._mtp))

    def attention(self, layers: tuple[int, ...]) -> None:
        """Attention and the norms of a layer."""
        shape, family = self._shape, self._family
        hidden, heads, latent = shape.hidden, shape.heads, shape.latent
        norms = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
        for name in norms[: family.layer_norms]:
            self.add(f".{name}.weight", (hidden,), layers)
        if latent is not None:
            query = heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
            if latent.q_lora_rank is None:
                self.add(".self_attn.q_proj.weight", (query, hidden), layers)
            else:
                self.add(".self_attn.q_a_proj.weight", (latent.q_lora_rank, hidden), layers)
                self.add(".self_attn.q_a_layernorm.weight", (latent.q_lora_rank,), layers)
                self.add(".self_attn.q_b_proj.weight", (query, latent.q_lora_rank), layers)
            self.add(".self_attn.kv_a_proj_with_mqa.weight", (latent.row_elements, hidden), layers)
            self.add(".self_attn.kv_a_layernorm.weight", (latent.kv_lora_rank,), layers)
            expanded = heads * (latent.qk_nope_head_dim + latent.v_head_dim)
            self.add(".self_attn.kv_b_proj.weight", (expanded, latent.kv_lora_rank), layers)
            self.add(".self_attn.o_proj.weight", (hidden, heads * latent.v_head_dim), layers)
            return
        query, key = heads * shape.head_dim, shape.kv_heads * shape.head_dim
        for name, outputs in (("q_proj", query), ("k_proj", key), ("v_proj", key)):
            self.add(f".self_attn.{name}.weight", (outputs, hidden), layers)
            if family.qkv_bias or shape.attention_bias:
                self.add(f".self_attn.{name}.bias", (outputs,), layers)
        self.add(".self_attn.o_proj.weight", (hidden, query), layers)
        # GLM and Qwen write `attention_bias` for the three inputs only; Llama means the output as well.
        if family.o_bias or (shape.attention_bias and shape.architecture == "LlamaForCausalLM"):
            self.add(".self_attn.o_proj.bias", (hidden,), layers)
        if family.head_norms:
            for name in ("q_norm", "k_norm"):
                self.add(f".self_attn.{name}.weight", (shape.head_dim,), layers)
        if family.sinks:
            self.add(".self_attn.sinks", (heads,), layers)

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
            self._gated(".mlp.shared_experts", moe.shared_intermediate, layers)
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
        hidden = self._shape.hidden
        self.add(f"{block}.gate_proj.weight", (intermediate, hidden), layers, copies)
        self.add(f"{block}.up_proj.weight", (intermediate, hidden), layers, copies)
        self.add(f"{block}.down_proj.weight", (hidden, intermediate), layers, copies)
