"""The twin's checkpoint config: it keeps what it reads."""

import json
from types import SimpleNamespace

__all__ = ["PretrainedConfig"]


class PretrainedConfig:
    """A checkpoint's ``config.json`` and a rank."""

    def __init__(self, keys):
        self.keys = keys
        self.architecture = keys["architecture"]
        self.mapping = SimpleNamespace(rank=0, **keys["mapping"])

    @classmethod
    def from_json_file(cls, config_file):
        with open(config_file) as file:
            return cls(json.load(file))

    def set_rank(self, rank):
        self.mapping.rank = rank
