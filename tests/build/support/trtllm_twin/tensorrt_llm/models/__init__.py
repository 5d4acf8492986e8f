"""The twin's models: they know which file they were made from."""

import os

__all__ = ["MODEL_MAP"]


class Model:
    """One rank of a checkpoint."""

    def __init__(self, config, path):
        self.config, self.path = config, path

    @classmethod
    def from_checkpoint(cls, ckpt_dir, rank=None, config=None, *, preprocess_weights_hook=None):
        if rank is not None:
            config.set_rank(rank)
        path = os.path.join(ckpt_dir, f"rank{config.mapping.rank}.safetensors")
        assert os.path.isfile(path)
        return cls(config, path)


MODEL_MAP = dict.fromkeys(("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"), Model)
