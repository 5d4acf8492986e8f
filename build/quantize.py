"""Quantizing with NVIDIA ModelOpt: find the scales on calibration text, then write the packed checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundhouse.errors import BuildError, ModelError, UsageError

from .events import OnStep
from .memory import Arithmetic
from .quiet import quiet_libraries
from .recipe import Recipe

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["calibrate", "load_base", "load_tokenizer", "token_windows", "write_checkpoint"]

_QKV, _GATE_UP = ("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")
_FUSED: dict[str, tuple[tuple[str, ...], ...]] = {"torch": (), "tensorrt": (_QKV, _GATE_UP), "trtllm-pytorch": (_QKV, _GATE_UP)}
"""Linears that a target holds as one."""


def load_base(folder: Path, arithmetic: Arithmetic) -> PreTrainedModel:
    """Load a model folder on the CPU, weights rounded to bf16. Remote code is never run."""
    import torch
    from transformers import AutoModelForCausalLM

    with quiet_libraries():
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, trust_remote_code=False)
    return model.to(getattr(torch, arithmetic)).eval()


def token_windows(tokenizer: Any, text: str, *, windows: int, tokens: int) -> torch.Tensor:
    """Cut a text into at most ``windows`` windows of ``tokens`` tokens: int64 [W, T].

    Raises:
        UsageError: the text is shorter than one window.
    """
    import torch

    ids = torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"])
    whole = min(windows, len(ids) // tokens)
    if whole == 0:
        raise UsageError(f"the text has {len(ids)} tokens, less than one window of {tokens}", hint="Give a longer text.")
    return ids[: whole * tokens].view(whole, tokens)


def load_tokenizer(folder: Path) -> Any:
    """Load a model folder's tokenizer. Remote code is never run.

    Raises:
        ModelError: there is none, or it cannot be read.
    """
    from transformers import AutoTokenizer

    try:
        with quiet_libraries():
            return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"{folder} has no usable tokenizer: {str(error).splitlines()[0]}") from None


def calibrate(model: PreTrainedModel, tokenizer: Any, text: str, recipe: Recipe, group: int | None, on_step: OnStep) -> None:
    """Find weight, input and KV scales; the model then simulates its quantized self.

    Args:
        model: the base, changed in place.
        tokenizer: the model's.
        text: calibration text; the recipe says how much of it is used.
        recipe: which weights, which KV, how much search.
        group: INT4 group size, or None.
        on_step: told (done, total) forward passes.
    """
    import torch

    config = _modelopt_config(recipe, group)
    if config is None:
        return
    torch.manual_seed(recipe.seed)
    windows = token_windows(tokenizer, text, windows=recipe.calibration.samples, tokens=recipe.calibration.tokens)
    # AWQ runs the text twice: once for activation statistics, once to search scales.
    total = len(windows) * (2 if recipe.weights == "int4_awq" else 1)
    steps = _counter(total, on_step)

    def run_text(quantized: PreTrainedModel) -> None:
        for window in windows:
            quantized(input_ids=window[None], use_cache=False)
            next(steps)

    with torch.no_grad(), quiet_libraries():
        import modelopt.torch.quantization as mtq

        mtq.quantize(model, config, run_text)
        if recipe.weights == "fp8":
            _share_fused_scales(model, recipe)


def write_checkpoint(model: PreTrainedModel, tokenizer: Any, recipe: Recipe, folder: Path) -> None:
    """Pack the weights and write a unified Hugging Face checkpoint with its tokenizer; the model is used up.

    Raises:
        BuildError: ModelOpt's export failed; its own words are in the message.
    """
    import torch

    with torch.no_grad(), quiet_libraries():
        model.to(torch.bfloat16)  # what is not quantized is written as it is held
        if recipe.weights == "bf16" and recipe.kv_cache == "bf16":
            model.save_pretrained(folder)
        else:
            from modelopt.torch.export import export_hf_checkpoint

            try:
                export_hf_checkpoint(model, export_dir=folder)
            except Exception as error:  # ModelOpt raises whatever went wrong inside
                raise BuildError(f"ModelOpt could not write the checkpoint: {type(error).__name__}: {error}") from error
        tokenizer.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)


def _share_fused_scales(model: PreTrainedModel, recipe: Recipe) -> None:
    """Give linears that the target holds as one the largest of their FP8 scales: it has one for all of them.

    ModelOpt's export does so only where a norm before them shows that they belong together.
    """
    for module, names in product(model.modules(), _FUSED[recipe.target]):
        fused = [getattr(module, name, None) for name in names]
        if None in fused:
            continue
        for quantizer in ("weight_quantizer", "input_quantizer"):
            quantizers: list[Any] = [getattr(linear, quantizer) for linear in fused]
            largest = max(each.amax for each in quantizers)
            for each in quantizers:
                each.amax = largest.clone()


def _modelopt_config(recipe: Recipe, group: int | None) -> dict[str, Any] | None:
    with quiet_libraries():
        import modelopt.torch.quantization as mtq

    config: dict[str, Any] | None = None
    if recipe.weights == "int4_awq":
        config = copy.deepcopy(mtq.INT4_AWQ_CFG)
        for entry in config["quant_cfg"]:
            if entry["quantizer_name"] == "*weight_quantizer":
                entry["cfg"]["block_sizes"] = {-1: group, "type": "static"}
        config["algorithm"] = {"method": "awq_lite", "alpha_step": recipe.calibration.alpha_step}
    elif recipe.weights == "fp8":
        config = copy.deepcopy(mtq.FP8_DEFAULT_CFG)
    if recipe.kv_cache == "fp8":
        kv = copy.deepcopy(mtq.FP8_KV_CFG["quant_cfg"])
        off = {"quantizer_name": "*", "enable": False}
        config = config or {"quant_cfg": [off], "algorithm": "max"}
        config["quant_cfg"] = config["quant_cfg"] + kv
    return config


def _counter(total: int, on_step: OnStep) -> Iterator[None]:
    """Report one more step at each ``next``; extra steps keep the bar at its end."""
    done = 0
    while True:
        done = min(done + 1, total)
        on_step(done, total)
        yield
