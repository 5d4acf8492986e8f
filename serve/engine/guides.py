"""Guides: JSON schemas and regular expressions that an answer must fit, made ready for one model's tokens.

The work is done by llguidance, which bounds itself only in part: a schema of 40 characters can keep it busy for half a
minute. So guides are compiled in a thread of their own, while other requests go on, and given up after two seconds.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING

from roundhouse.errors import RequestError

from .guide_state import GuideState, mask_of, reason_of
from .guide_worker import Job, Worker
from .request import Guide
from .tokenizer import EngineTokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

__all__ = ["CompiledGuide", "GuideCompiler", "check_guide"]

_MOST_BYTES = 64 * 1024
_MOST_CACHED = 16
_COMPILE_S = 2.0
_MASK_S = 0.2
_MOST_LEFT_BEHIND = 2
_MOST_WAITING = 4
"""Guides that are compiled or wait for it. More could keep those who wait for longer than an engine may seem stuck."""
_MOST_LEXER_STATES = 20_000
"""About 2 KB each, for every answer that follows the guide."""
_WHITESPACE = r"[ \n\t\r]{1,32}"
"""Between the parts of a JSON text. Without a limit a model can go on with blanks for ever."""
_BUSY = "other requests' schemas keep the compiler busy; try again later"
_PROBE = '{"naïve": [-1.5e+3, true, null], "text": "a\\n😀 zz"}'


def check_guide(guide: Guide) -> None:
    """See that a guide's text is of a size and form that can be compiled.

    Raises:
        RequestError: ``invalid_request``, naming what is wrong.
    """
    try:
        size = len(guide.text.encode())
    except UnicodeEncodeError:
        raise _invalid(guide, "it holds half of a surrogate pair, which is not text") from None
    if size > _MOST_BYTES:
        raise _invalid(guide, f"it has {size:,} bytes; at most {_MOST_BYTES:,} are allowed")
    if guide.kind == "regex" and not guide.text:
        raise _invalid(guide, "it is empty")
    if guide.kind == "json_schema":
        try:
            schema = json.loads(guide.text)
        except ValueError as error:
            raise _invalid(guide, f"it is not valid JSON: {error}") from None
        except RecursionError:
            raise _invalid(guide, "it is nested too deeply") from None
        if not isinstance(schema, dict):
            raise _invalid(guide, "it must be a JSON object")


class CompiledGuide:
    """A guide, once it has been compiled: see :attr:`done`."""

    def __init__(self, guide: Guide, job: Job[tuple[LLMatcher, bytes]], compiler: Worker, masks: Worker) -> None:
        self._guide = guide
        self._job = job
        self._compiler = compiler
        self._masks = masks

    @property
    def done(self) -> bool:
        """Whether it has been compiled or refused. Somebody must look now and then: that is what ends the wait."""
        return self.wait(0)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is done, for so long at most; returns :attr:`done`."""
        self._compiler.look()
        return self._job.wait(timeout_s) if timeout_s else self._job.done

    def start(self) -> GuideState:
        """A state at the beginning of a text; waits until it is :attr:`done`.

        Raises:
            RequestError: ``invalid_request``, it cannot be compiled.
        """
        try:
            matcher, mask = self._compiler.finish(self._job)
        except TimeoutError as error:
            raise _invalid(self._guide, f"it is too complex: compiling it takes {error}") from None
        except (ValueError, RuntimeError) as error:
            raise _invalid(self._guide, str(error)) from None
        return GuideState(matcher.deep_copy(), mask, self._masks)


class GuideCompiler:
    """Compiles guides for one model; the latest ones are kept.

    Args:
        tokenizer: the model's.
        vocab: token ids of the model are below this.
    """

    def __init__(self, tokenizer: EngineTokenizer, vocab: int) -> None:
        self._tokenizer = tokenizer
        self._vocab = vocab
        self._tokens: LLTokenizer | None = None
        self._unreadable: str | None = None
        self._compiler = Worker("guide-compiler", most_cpu_s=_COMPILE_S, most_left_behind=_MOST_LEFT_BEHIND)
        # Masks of requests that run already are never kept waiting.
        self._masks = Worker("guide-masks", most_cpu_s=_MASK_S, most_left_behind=sys.maxsize)
        self._cache: OrderedDict[Guide, CompiledGuide] = OrderedDict()
        self._waiting: list[CompiledGuide] = []

    def prepare(self) -> None:
        """Read the tokenizer, which takes a second or more. Without this the first guide does, between two steps."""
        if self._tokens is not None or self._unreadable is not None:
            return
        try:
            self._tokens = _read(self._tokenizer, self._vocab)
        except ValueError as error:
            self._unreadable = str(error)

    def compile(self, guide: Guide) -> CompiledGuide:
        """Begin to compile a guide that :func:`check_guide` let pass, unless it was compiled lately.

        Raises:
            RequestError: ``invalid_request``, no guide works with this tokenizer; ``overloaded``, others' guides still keep
                the processor busy.
        """
        self.prepare()
        if self._tokens is None:
            raise RequestError("invalid_request", f"this model cannot be guided by a schema or regex: {self._unreadable}")
        if self._masks.left_behind >= _MOST_LEFT_BEHIND:  # a known guide may be the one whose masks take too long
            raise RequestError("overloaded", _BUSY)
        if guide in self._cache:
            self._cache.move_to_end(guide)
            return self._cache[guide]
        self._waiting = [each for each in self._waiting if not each.done]
        if self._compiler.left_behind >= _MOST_LEFT_BEHIND or len(self._waiting) >= _MOST_WAITING:
            raise RequestError("overloaded", _BUSY)
        tokens = self._tokens
        compiled = CompiledGuide(guide, self._compiler.submit(lambda: _compile(tokens, guide)), self._compiler, self._masks)
        self._waiting.append(compiled)
        self._cache[guide] = compiled
        if len(self._cache) > _MOST_CACHED:
            self._cache.popitem(last=False)
        return compiled


def _compile(tokens: LLTokenizer, guide: Guide) -> tuple[LLMatcher, bytes]:
    from llguidance import LLMatcher, LLParserLimits, regex_to_lark

    if guide.kind == "regex":
        grammar = LLMatcher.grammar_from_lark(f"start: /{regex_to_lark(guide.text, 'd')}/")  # \d is 0 to 9
    else:
        schema = guide.text if guide.kind == "json_schema" else '{"type": "object"}'
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_pattern": _WHITESPACE})
    limits = LLParserLimits(max_lexer_states=_MOST_LEXER_STATES, verbose_errors=False)
    matcher = LLMatcher(tokens, grammar, log_level=0, limits=limits)
    if matcher.is_error():
        raise ValueError(reason_of(matcher))
    return matcher, mask_of(matcher)


def _read(tokenizer: EngineTokenizer, vocab: int) -> LLTokenizer:
    """The tokenizer in llguidance's form.

    Raises:
        ValueError: its tokens' bytes cannot be known, or none ends a text.
    """
    from llguidance import LLTokenizer

    size = tokenizer.backend.get_vocab_size()
    eos = sorted(token for token in tokenizer.eos_ids if token < min(vocab, size))
    if not eos:
        raise ValueError("it has no end-of-sequence token")
    tokens = LLTokenizer(tokenizer.backend.to_str(), n_vocab=max(vocab, size), eos_token=eos)
    probe = [id_ for id_ in tokenizer.backend.encode(_PROBE, add_special_tokens=False).ids if tokenizer.shows_text(id_)]
    if tokens.decode_bytes(probe).removeprefix(b" ") != tokenizer.decode(probe).encode():
        raise ValueError("the bytes that its tokens stand for are not those of its text")
    return tokens


def _invalid(guide: Guide, what: str) -> RequestError:
    name = {"json_schema": "JSON schema", "json_object": "JSON object", "regex": "regular expression"}[guide.kind]
    return RequestError("invalid_request", f"the {name} cannot be followed: {what}")
