"""Every form: what is a call, what stays text, and that it does not matter how the text is cut."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_texts import TOOLS, Said, read

from roundhouse.errors import UsageError
from roundhouse.serve.openai.tools import FORM_NAMES, CallDelta, form_named, form_of_template

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENTS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
WEATHER = '{"city": "Oslo", "days": 2}'


def kimi(*calls: tuple[str, str]) -> str:
    return SECTION + "".join(f"{CALL}{header}{ARGUMENTS}{arguments}{CALL_END}" for header, arguments in calls) + SECTION_END


def glm(name: str, **arguments: str) -> str:
    members = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in arguments.items())
    return f"<tool_call>{name}\n{members}</tool_call>"


READ: list[tuple[str, str, list[Said]]] = [
    # Hermes and Qwen
    (
        "hermes",
        f'Let me see.\n<tool_call>\n{{"name": "weather", "arguments": {WEATHER}}}\n</tool_call>',
        ["Let me see.", ("weather", WEATHER)],
    ),
    (
        "hermes",
        '<tool_call>{"name":"ping","arguments":{}}</tool_call>\n<tool_call>{"arguments": {"a": 1}, "name":"ping"}</tool_call>.',
        [("ping", "{}"), ("ping", '{"a": 1}'), "."],
    ),
    ("hermes", '<tool_call>{"name": "ping"}</tool_call>', [("ping", "{}")]),
    (
        "hermes",
        '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}</tool_call>',
        [("weather", '{"city": "Oslo"}')],
    ),
    ("hermes", '<tool_call>{"name": "ping", "arguments": {}}', [("ping", "{}")]),
    ("hermes", '<tool_call>{"type": "function", "name": "ping", "arguments": {}, "id": "7"}</tool_call>', [("ping", "{}")]),
    (
        "hermes",
        '<tool_call>{"name": "ping", "arguments": {"t": "a </tool_call> } \\" ]", "u": [{}]}}</tool_call>',
        [("ping", '{"t": "a </tool_call> } \\" ]", "u": [{}]}')],
    ),
    ("hermes", '<tool_call>{"name": "unheard_of", "arguments": {}}</tool_call>', [("unheard_of", "{}")]),
    # cut off by the length: what there is of it
    ("hermes", '<tool_call>{"name": "weather", "arguments": {"city": "Os', [("weather", '{"city": "Os')]),
    # Llama 3
    ("llama3", f'{{"name": "weather", "parameters": {WEATHER}}}', [("weather", WEATHER)]),
    ("llama3", f'\n<|python_tag|>{{"name": "weather", "parameters": {WEATHER}}}', [("weather", WEATHER)]),
    ("llama3", '{"name":"ping","parameters":{}}; {"name":"ping","parameters":{"a":1}}', [("ping", "{}"), ("ping", '{"a":1}')]),
    ("llama3", '{"type": "function", "name": "ping", "arguments": {}}', [("ping", "{}")]),
    ("llama3", 'Well. <|python_tag|>{"name": "ping", "parameters": {}}', ["Well.", ("ping", "{}")]),
    # Kimi
    (
        "kimi",
        "Hm. " + kimi(("functions.weather:0", WEATHER), ("functions.ping:1", "{}")),
        ["Hm.", ("weather", WEATHER), ("ping", "{}")],
    ),
    ("kimi", kimi(("functions.ping:0", "\n")) + " Done.", [("ping", "{}"), "Done."]),
    ("kimi", f"{SECTION}\n{CALL} ping:3 {ARGUMENTS} {{}} {SECTION_END}", [("ping", "{}")]),
    (
        "kimi",
        f"{CALL}functions.ping:0{ARGUMENTS}{{}}{CALL}functions.ping:1{ARGUMENTS}{{}}{CALL_END}",
        [("ping", "{}"), ("ping", "{}")],
    ),
    ("kimi", f'{SECTION}{CALL}functions.weather:0{ARGUMENTS}{{"city', [("weather", '{"city')]),
    # GLM
    ("glm", "Yes.\n" + glm("weather", city="Oslo", days="2"), ["Yes.", ("weather", '{"city": "Oslo", "days": 2}')]),
    ("glm", "<tool_call>ping</tool_call>\n<tool_call>ping\n</tool_call>", [("ping", "{}"), ("ping", "{}")]),
    ("glm", glm("weather", city="7", days="soon", unit="null"), [("weather", '{"city": "7", "days": "soon", "unit": null}')]),
    ("glm", glm("weather", city="Åre", unit="7"), [("weather", '{"city": "Åre", "unit": "7"}')]),
    ("glm", glm("ping", a="[1, 2]", b="x y", c='"q"', d="NaN"), [("ping", '{"a": [1, 2], "b": "x y", "c": "q", "d": "NaN"}')]),
    ("glm", "<tool_call>ping <arg_key>a</arg_key> <arg_value>1</arg_value>", [("ping", '{"a": 1}')]),
    ("glm", glm("ping", a="</tool_call>"), [("ping", '{"a": "</tool_call>"}')]),
]

TEXT = [
    ("hermes", "No call.\n  Only text. "),
    ("hermes", "The tag <tool_call> opens a call."),
    ("hermes", '<tool_call>{"name": "ping", "arguments": {\'city\': 1}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "ping", "arguments": [1]}</tool_call>'),
    ("hermes", '<tool_call>{"arguments": {"a": nothing}, "name": "ping"}</tool_call>'),
    ("hermes", '<tool_call>{"name": "no good name", "arguments": {}}</tool_call>'),
    ("hermes", '<tool_call>{"arguments": {}}</tool_call> after'),
    ("hermes", '<tool_call>{"name": "ping", "arguments": "a word"}</tool_call>'),
    ("hermes", r'<tool_call>{"name": "ping", "arguments": "{\"a\": \"\ud800\"}"}</tool_call>'),
    ("hermes", '<tool_call>{"name": "pi'),
    ("llama3", '{"answer": 42}'),
    ("llama3", '{"name": "John", "parameters": {}}'),
    ("llama3", 'As JSON: {"name": "ping", "parameters": {}}'),
    ("llama3", '<|python_tag|>import math\nprint({"name": 1})'),
    ("llama3", '{"name": "ping", "par'),
    ("kimi", f"{SECTION}{SECTION_END}"),
    ("kimi", f"{SECTION}{CALL}not a header{ARGUMENTS}{{}}{CALL_END}{SECTION_END}"),
    ("kimi", f"{CALL}functions.ping:0{CALL_END}"),
    ("kimi", f"{SECTION} {CALL}functions.pi"),
    ("glm", "<tool_call>two words</tool_call>"),
    ("glm", "<tool_call>ping<arg_key>a</arg_key>no value</tool_call>"),
    ("glm", "<tool_call>ping<arg_key>a</arg_key><arg_value>1"),
    ("glm", glm("ping", a="1").replace("</tool_call>", "<arg_key>a</arg_key><arg_value>2</arg_value></tool_call>")),
    ("glm", "<tool_call>pi"),
]


@pytest.mark.parametrize(("form", "text", "said"), READ)
def test_calls_are_read_out_of_the_text(form: str, text: str, said: list[Said]) -> None:
    assert read(form_named(form), [text]) == said
    assert read(form_named(form), text) == said


@pytest.mark.parametrize(("form", "text"), TEXT)
def test_what_is_no_call_stays_text(form: str, text: str) -> None:
    assert read(form_named(form), [text]) == [text]
    assert read(form_named(form), text) == [text]


@pytest.mark.parametrize("form", FORM_NAMES)
def test_nothing_says_nothing(form: str) -> None:
    assert read(form_named(form), []) == read(form_named(form), ["", ""]) == []


def test_the_name_comes_before_the_arguments_are_complete() -> None:
    for form, text in (
        ("hermes", '<tool_call>{"name": "weather", "arguments": {"city'),
        ("llama3", '{"name": "weather", "parameters": {"city'),
        ("kimi", f'{SECTION}{CALL}functions.weather:0{ARGUMENTS}{{"city'),
    ):
        deltas = form_named(form).parser(TOOLS).push(text)
        assert isinstance(deltas[0], CallDelta)
        assert [getattr(delta, "fragment", "") for delta in deltas[1:]] == ['{"city']


def test_text_is_not_held_back_longer_than_a_call_is_possible() -> None:
    parser = form_named("hermes").parser(TOOLS)
    assert parser.push("a < b <tool") != []
    assert [delta.text for delta in parser.push("box>")] == [" <toolbox>"]  # type: ignore[union-attr]


def test_kimis_own_ids_are_kept_and_made_unique() -> None:
    parser = form_named("kimi").parser(TOOLS)
    deltas = parser.push(kimi(("functions.ping:0", "{}"), ("functions.ping:0", "{}")))
    ids = [delta.id for delta in deltas if isinstance(delta, CallDelta)]
    assert ids[0] == "functions.ping:0"
    assert len(set(ids)) == 2


FRAGMENTS = [
    *("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<|python_tag|>"),
    *(
        SECTION,
        SECTION_END,
        CALL,
        ARGUMENTS,
        CALL_END,
        "functions.ping:0",
        "weather",
        "\n",
        " ",
        ";",
        "<",
        ">",
        "|",
        "</",
        "{",
        "}",
    ),
    *(
        '{"name": "ping", "arguments": {',
        '{"name": "weather", "parameters": {"city": "',
        '"}}',
        "}}",
        '"name": ',
        '"arguments": ',
        '"',
    ),
    *(text for _, text, _ in READ),
]
WORDS = st.integers(0, 10**6).map(lambda number: f"w{number}w")
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | WORDS | st.text(max_size=4), max_size=12).map("".join)


def cut(text: str, places: list[float]) -> list[str]:
    """A text in pieces; places are parts of its length."""
    ends = sorted(int(place * len(text)) for place in places)
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


@pytest.mark.parametrize("form", FORM_NAMES)
@given(text=TEXTS, places=st.lists(st.floats(0, 1), max_size=12))
def test_how_a_text_is_cut_does_not_matter(form: str, text: str, places: list[float]) -> None:
    whole = read(form_named(form), [text])
    assert read(form_named(form), cut(text, places)) == whole
    assert read(form_named(form), text) == whole


@pytest.mark.parametrize("form", FORM_NAMES)
@given(text=TEXTS)
def test_nothing_is_lost(form: str, text: str) -> None:
    """Every word of the text is in what was said, and no word more often than in the text; what is left out is markup."""
    said = [part if isinstance(part, str) else " ".join(part) for part in read(form_named(form), [text])]
    assert sorted(re.findall(r"w\d+w", " ".join(said))) == sorted(re.findall(r"w\d+w", text))


@pytest.mark.parametrize("form", FORM_NAMES)
@given(text=st.text(alphabet=st.characters(exclude_characters="<{;", exclude_categories=["Cs"])))
def test_text_without_markup_is_what_it_is(form: str, text: str) -> None:
    assert "".join(str(part) for part in read(form_named(form), text)) == text


@pytest.mark.parametrize("form", FORM_NAMES)
def test_templates_tell_their_form(form: str) -> None:
    words = {
        "hermes": '<tool_call>\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\n</tool_call>',
        "llama3": "<|start_header_id|>ipython<|end_header_id|>",
        "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>",
        "glm": "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>",
    }
    found = form_of_template(words[form])
    assert found is not None
    assert found.name == form


@pytest.mark.parametrize("template", ["", "{{ message.content }}", "<tool_call>\n<function=name>", "[TOOL_CALLS]"])
def test_other_templates_have_no_known_form(template: str) -> None:
    assert form_of_template(template) is None


def test_a_form_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="there is no tool form 'xml'") as caught:
        form_named("xml")
    assert caught.value.hint == "Known are hermes, llama3, kimi, glm."


def test_what_was_read_is_json() -> None:
    for form, text, _ in READ:
        for part in read(form_named(form), [text]):
            if not isinstance(part, str) and part[1].endswith("}"):
                assert isinstance(json.loads(part[1]), dict)
