from __future__ import annotations

from roundhouse.build.merging import merged
from roundhouse.build.recipe_options import recipe_for


def test_merging_changes_neither_side() -> None:
    base, more = {"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": {"e": 4}}
    assert merged(base, more) == {"a": {"b": 1, "d": 3}, "c": {"e": 4}}
    assert (base, more) == ({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": {"e": 4}})


def test_values_of_a_command_line_leave_what_a_file_says_beside_them(tmp_path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("model: m\ntarget: trtllm-pytorch\ntarget_options: {kv_cache_config: {use_uvm: true}}\n")
    recipe = recipe_for(str(file), ["target_options={kv_cache_config: {event_buffer_max_size: 9}}"])
    assert recipe.target_options == {"kv_cache_config": {"use_uvm": True, "event_buffer_max_size": 9}}
