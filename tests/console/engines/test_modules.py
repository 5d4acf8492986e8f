"""What modules became, folded as people read it."""

from __future__ import annotations

from roundhouse.console.engines.modules import fold_modules, kinds_of_modules


def test_modules_that_differ_in_numbers_are_one_row_and_layers_are_ranges() -> None:
    layers = {f"model.layers.{n}.up": "fp8" for n in (0, 1, 2, 3, 7, 10)}
    folded = fold_modules({**layers, "model.layers.4.up": "bf16", "model.norm": "bf16"})
    told = [(each.pattern, each.became, each.count, each.layers) for each in folded]
    assert told == [
        ("model.layers.*.up", "bf16", 1, "4"),
        ("model.layers.*.up", "fp8", 6, "0-3, 7, 10"),
        ("model.norm", "bf16", 1, ""),
    ]
    assert folded[1].names[-2:] == ("model.layers.7.up", "model.layers.10.up")  # 7 before 10


def test_experts_are_folded_into_their_layers_and_only_some_are_named() -> None:
    experts = {f"model.layers.{layer}.experts.{n}.up": "int4" for layer in (1, 2) for n in range(300)}
    (folded,) = fold_modules(experts)
    assert (folded.pattern, folded.layers, folded.count) == ("model.layers.*.experts.*.up", "1-2", 600)
    assert (len(folded.names), folded.unnamed) == (400, 200)


def test_kinds_are_counted_without_what_is_told_beside_them() -> None:
    modules = {"a": "int4 g64, input scale kept", "b": "int4 g64, folded", "c": "bf16"}
    assert kinds_of_modules(modules) == (("int4 g64", 2), ("bf16", 1))
