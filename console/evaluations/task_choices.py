"""The tasks that the form for an evaluation offers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLIC", "SHIPPED", "TaskChoice"]


@dataclass(frozen=True)
class TaskChoice:
    """A task, and what it asks."""

    name: str
    what: str


SHIPPED: tuple[TaskChoice, ...] = (
    TaskChoice("rh-perplexity", "how surprised it is by public-domain text"),
    TaskChoice("rh-agreement", "how often it holds the same next token for the likeliest as the base"),
    TaskChoice("rh-arithmetic", "sums from templates, with exact answers"),
    TaskChoice("rh-needle", "a fact found again in a growing context, where FP8 KV fails first"),
    TaskChoice("rh-tools", "tool calls that keep to their JSON schemas"),
)
"""They run anywhere, and are no public benchmarks."""
PUBLIC: tuple[TaskChoice, ...] = (
    TaskChoice("gsm8k", "word problems of grade school"),
    TaskChoice("arc_easy", "science questions, the easier ones"),
    TaskChoice("arc_challenge", "science questions, the harder ones"),
    TaskChoice("mmlu", "57 subjects"),
    TaskChoice("mmlu_pro", "14 subjects, ten choices each"),
)
"""lm-evaluation-harness measures them, with data from a folder or the hub."""
