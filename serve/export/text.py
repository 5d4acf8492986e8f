"""YAML as people write it: keys in our order, long texts as blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

__all__ = ["gib", "yaml_text"]

_GIB = 2**30
_WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """No anchors, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def yaml_text(documents: Iterable[dict[str, Any]], *, about: str) -> str:
    """YAML documents, one after the other.

    Args:
        documents: each a mapping.
        about: said in comments at the top; may have several lines.
    """
    head = "".join(f"# {line}".rstrip() + "\n" for line in about.splitlines())
    return head + "---\n".join(
        yaml.dump(each, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH) for each in documents
    )


def gib(count: int) -> int:
    """Bytes in whole GiB, rounded up."""
    return -(-count // _GIB)
