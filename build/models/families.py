"""What each family's layers have beside the plain Llama layer; transformers' own modules are what tests compare this with."""

from __future__ import annotations

from dataclasses import dataclass

from .shape import ModelShape

__all__ = ["FAMILIES", "Family"]

_QKV = ("q_proj", "k_proj", "v_proj")
_QKVO = (*_QKV, "o_proj")
_LATENT = ("q_a_proj", "kv_a_proj_with_mqa", "o_proj")


@dataclass(frozen=True)
class Family:
    """Habits of a family, as far as they make tensors."""

    biases: tuple[str, ...] = ()
    """Linears of attention that have biases where the config asks for ``attention_bias``."""
    biased: bool = False
    """Whether they have them when the config does not say."""
    mlp_bias: bool = False
    """Whether dense MLPs heed the config's ``mlp_bias``."""
    head_norms: bool = False
    chosen_head_norms: bool = False
    """Whether the config's ``use_qk_norm`` decides on norms of queries and keys."""
    layer_norms: int = 2
    sinks: bool = False
    router_bias: str | None = None
    expert_bias: bool = False
    shared_gate: bool = False
    mtp_embeddings: bool = False
    """Whether multi-token-prediction layers store an embedding and a head of their own."""

    def attention_biases(self, shape: ModelShape) -> tuple[str, ...]:
        """Linears of attention that have a bias."""
        asked = self.biased if shape.attention_bias is None else shape.attention_bias
        return self.biases if asked else ()

    def has_head_norms(self, shape: ModelShape) -> bool:
        """Whether queries and keys are normed head by head."""
        return self.head_norms or (self.chosen_head_norms and shape.qk_norm)


_CORRECTED = "mlp.gate.e_score_correction_bias"

FAMILIES = {
    "LlamaForCausalLM": Family(biases=_QKVO, mlp_bias=True),
    "MistralForCausalLM": Family(),
    "MixtralForCausalLM": Family(),
    "Qwen2ForCausalLM": Family(biases=_QKV, biased=True),
    "Qwen2MoeForCausalLM": Family(biases=_QKV, biased=True, shared_gate=True),
    "Qwen3ForCausalLM": Family(biases=_QKVO, head_norms=True),
    "Qwen3MoeForCausalLM": Family(biases=_QKVO, head_norms=True),
    "Gemma3ForCausalLM": Family(biases=_QKVO, head_norms=True, layer_norms=4),
    "Gemma3ForConditionalGeneration": Family(biases=_QKVO, head_norms=True, layer_norms=4),
    "GptOssForCausalLM": Family(biases=_QKVO, biased=True, sinks=True, router_bias="mlp.router.bias", expert_bias=True),
    "Glm4MoeForCausalLM": Family(biases=_QKV, chosen_head_norms=True, router_bias=_CORRECTED),
    "DeepseekV2ForCausalLM": Family(biases=_LATENT, mlp_bias=True),
    "DeepseekV3ForCausalLM": Family(biases=_LATENT, router_bias=_CORRECTED, mtp_embeddings=True),
    "DeepseekV32ForCausalLM": Family(biases=_LATENT, router_bias=_CORRECTED, mtp_embeddings=True),
    "GlmMoeDsaForCausalLM": Family(biases=_LATENT, router_bias=_CORRECTED),
    "KimiK25ForConditionalGeneration": Family(biases=_LATENT, router_bias=_CORRECTED),
}
"""By the name in ``architectures``."""
