"""A twin of TensorRT, as far as the guard's engine is built of it: the engine is JSON of its profile."""

import json
import os
from types import SimpleNamespace

if os.environ.get("TWIN_TENSORRT_MISSING"):
    raise ModuleNotFoundError("No module named 'tensorrt'")
__version__ = "10.14.1.48"
int32 = "int32"
TensorRTPhase = SimpleNamespace(BUILD="build")


def PluginFieldCollection(fields):  # noqa: N802  # upstream's name
    return tuple(fields)


class Logger:
    WARNING = "warning"

    def __init__(self, severity):
        self.severity = severity


class Network:
    def add_input(self, name, dtype, shape):
        return name

    def add_plugin_v3(self, inputs, shape_inputs, plugin):
        return SimpleNamespace(get_output=lambda index: SimpleNamespace(name=""))

    def mark_output(self, tensor):
        assert tensor.name == "first_bad"


class Profile:
    def __init__(self):
        self.shapes = {}

    def set_shape(self, name, smallest, usual, largest):
        self.shapes[name] = largest


class Config:
    profile = None

    def add_optimization_profile(self, profile):
        self.profile = profile


class Builder:
    def __init__(self, logger):
        self.logger = logger

    def create_network(self, flags):
        return Network()

    def create_builder_config(self):
        return Config()

    def create_optimization_profile(self):
        return Profile()

    def build_serialized_network(self, network, config):
        return json.dumps(config.profile.shapes).encode()


class Registry:
    def __init__(self):
        self.libraries = []

    def get_creator(self, name, version, namespace):
        return SimpleNamespace(create_plugin=lambda *arguments: arguments) if self.libraries else None

    def load_library(self, path):
        self.libraries.append(path)


REGISTRY = Registry()


def get_plugin_registry():
    return REGISTRY
