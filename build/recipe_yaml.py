"""YAML as recipes use it: words stay words, no key stands twice, and nothing is so deep that reading it ends in a stack."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

import yaml

__all__ = ["is_manageable", "parse_yaml"]

_DEEPEST = 32
_MOST_VALUES = 10_000


def parse_yaml(text: str) -> Any:
    """Parse YAML with the booleans of YAML 1.2 (``off`` is a word) and without silently repeated keys.

    Raises:
        yaml.YAMLError: it is not YAML, a key stands twice, it is nested too deeply, or a value is not what it looks like
            (a thirteenth month).
    """
    try:
        return yaml.load(text, Loader=_RecipeLoader)  # a SafeLoader subclass
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, LookupError, AttributeError) as error:  # PyYAML's own, of values that a tag or a pattern misled it on
        raise yaml.YAMLError(f"it holds a value that cannot be: {error}") from None


def is_manageable(value: object) -> bool:
    """Whether lists and mappings are at most 32 deep and hold at most 10,000 values, each counted as often as it stands:
    aliases may make much of little, and circles of it.
    """
    level, seen = [value], 0
    for _ in range(_DEEPEST):
        level = list(islice((inner for outer in level for inner in _inside(outer)), _MOST_VALUES))
        seen += len(level)
        if not level or seen >= _MOST_VALUES:
            break
    return not level


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


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
                message = f"{reprlib.repr(key)} cannot be a key"
                raise yaml.constructor.ConstructorError(None, None, message, key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_BOOLEAN = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_RecipeLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, list("tTfF"))
