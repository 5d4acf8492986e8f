"""What a plan takes for granted, and what is legal and still worth a word: said, so that nobody has to find out."""

from __future__ import annotations

from collections.abc import Sequence

from ..models.parameters import Inventory
from .decode import DecodeEstimate
from .fit import Fit

__all__ = ["assumptions_of", "warnings_of"]

_BASES = {
    "derived": "decode speeds are derived: what 80% of the memory bandwidth allows with no other cost, an upper bound; "
    "`plan --published` shows what engines made of it",
    "fitted": "decode speeds are fitted: the fixed time of a step is that of {run} of this engine at its lowest concurrency",
    "measured": "decode speeds are measured in {run}: requests in flight over the median time between tokens, which above one "
    "request has prompts of others in it",
}
_FITTED_BETWEEN = (
    "decode speeds are fitted: the time of a step grows evenly with its requests between the concurrencies that {run} "
    "measured; the memory's speed is not known, so nothing is said beyond them"
)


def warnings_of(fit: Fit) -> list[str]:
    """What is legal and still worth a word, beside what the support table says."""
    shape, found = fit.shape, []
    if shape.dtype != "bf16" and fit.recipe.weights != "as_is":
        found.append(f"the input is {shape.dtype} ({shape.dtype_from}); it is converted to bf16")
    if fit.budget.tokens > 0 and not fit.requests_that_fit(fit.max_seq_len):
        found.append(f"the pool holds {fit.budget.tokens:,} tokens, not one request of max_seq_len {fit.max_seq_len:,}")
    return found


def assumptions_of(fit: Fit, inventory: Inventory, decode: Sequence[DecodeEstimate], context: int) -> list[str]:
    """What a plan takes for granted."""
    shape, hardware, found = fit.shape, fit.hardware, []
    if not inventory.from_files:
        found.append("no files were read: tensors follow from the model's dimensions and its family's habits")
    if inventory.unknown:
        found.append(f"kinds of tensors that are not known, counted as stored and held whole: {', '.join(inventory.unknown)}")
    if shape.unread:
        found.append(f"config keys that were not read: {', '.join(shape.unread)}")
    if any(parameter.mtp for parameter in inventory.parameters):
        found.append("layers for multi-token prediction are stored and not loaded")
    if hardware.kind == "cuda":
        found += _about_gpus(fit)
    if fit.budget.at_context is not None:
        found.append(
            f"some layers forget: KV tokens are those of requests of {fit.budget.at_context:,} tokens "
            f"(window {shape.sliding_window:,}); longer ones hold more, shorter ones fewer"
        )
    if decode and fit.parallel.pipeline > 1:
        found.append("decode speeds: pipeline stages work on equal parts of the requests at once")
    if decode:
        found += dict.fromkeys(_told(row, bandwidth_known=hardware.bandwidth is not None) for row in decode)
        found.append(f"decode speeds are for requests of {context:,} tokens; prefill is not predicted, only measured")
    return found


def _told(row: DecodeEstimate, *, bandwidth_known: bool) -> str:
    """Where a row is from."""
    words = _BASES[row.basis] if bandwidth_known or row.basis != "fitted" else _FITTED_BETWEEN
    return words.format(run=f"benchmark run {row.run}" if row.run else "one measured run")


def _about_gpus(fit: Fit) -> list[str]:
    hardware, shape = fit.hardware, fit.shape
    taken = hardware.total_memory - hardware.free_memory
    found = [f"{taken / 2**30:.2f} GiB of each GPU are taken by driver and context before anything is loaded"]
    if hardware.unverified:
        words = [name.replace("memory_mib", "memory size").replace("_", " ") for name in hardware.unverified]
        found.append(f"not checked against a data sheet for {hardware.name}: {', '.join(words)}")
    if (fraction := fit.memory_fraction) is not None:
        whose = "" if fit.recipe.memory_fraction else ", the target's default,"
        found.append(
            f"memory_fraction {fraction:g}{whose} is of what is free before loading, for weights and pages together; "
            "what is left is for activations and the runtime"
        )
    if fit.parallel.attention_data:
        more = sorted(part.replace("_", " ") for part in fit.parallel.whole)
        whole = f" and its {', '.join(more)} weights" if more else ""
        found.append(f"attention data parallelism: every rank holds attention{whole} whole, and the cache of its own requests")
    elif shape.latent is not None:
        found.append("every rank keeps latents whole")
    if any(parameter.part == "absorbed" for parameter in fit.parameters):
        found.append("the runtime's second copy of kv_b_proj is counted in 16 bits, whatever the weights are")
    elif fit.parallel.attention > shape.kv_heads:
        found.append(f"{shape.kv_heads} key/value heads are repeated on {fit.parallel.attention} ranks")
    return found
