"""From a request to a sequence, or to the reason why it cannot be served."""

from __future__ import annotations

from roundhouse.errors import RequestError

from .detokenize import TextStream
from .guides import CompiledGuide, GuideCompiler
from .request import Request, SamplingParams
from .sampling_limits import MOST_ANSWERS, check_sampling
from .sampling_state import SamplingState
from .sequence import Sequence
from .tokenizer import EngineTokenizer

__all__ = ["check_sampling", "make_sequence"]


def make_sequence(
    request: Request,
    tokenizer: EngineTokenizer,
    *,
    vocab: int,
    max_seq_len: int,
    pool_tokens: int,
    guides: GuideCompiler | None = None,
    max_answers: int = MOST_ANSWERS,
) -> Sequence:
    """Check a request and make the sequence of its first answer. ``max_new`` is 0 when it asks for no tokens.

    Only a prompt that is too long is an error: a request may ask for more than there is room for, and gets what there is.

    Args:
        request: as it came from the client.
        tokenizer: the model's.
        vocab: token ids of the model are below this.
        max_seq_len: prompt and generated tokens together; more are not generated.
        pool_tokens: tokens that the whole KV pool holds. The last generated token needs no place in it.
        guides: compiles what the text must look like. That goes on after the return: see :meth:`SamplingState.ready`.
        max_answers: the largest ``n``.

    Raises:
        RequestError: ``invalid_request``, naming the value and what is allowed; ``overloaded``, guides of others keep the
            compiler busy.
    """
    params = request.sampling
    check_sampling(params, vocab=vocab, max_answers=max_answers)
    most = min(max_seq_len - 1, pool_tokens)
    limit = f"{most:,} of {max_seq_len:,}" if most < pool_tokens else f"the {most:,} that its KV pool holds"
    prompt = _prompt_ids(request, tokenizer, most, limit)
    if not prompt:
        raise _invalid("the prompt is empty")
    if len(prompt) > most:
        raise _invalid(f"the prompt has {len(prompt):,} tokens; this engine takes at most {limit}")
    if outside := [token for token in prompt if not 0 <= token < vocab]:
        raise _invalid(f"token id {outside[0]} is not in 0..{vocab - 1}")
    return Sequence(
        request_id=request.request_id,
        tokens=prompt,
        prompt_tokens=len(prompt),
        max_new=min(params.max_tokens, max_seq_len - len(prompt), pool_tokens + 1 - len(prompt)),
        sampling=params,
        sampler=SamplingState(params, prompt, eos_ids=tokenizer.eos_ids, guide=_guide(params, guides)),
        text=TextStream(tokenizer, params.stop, params.min_tokens),
    )


def _guide(params: SamplingParams, guides: GuideCompiler | None) -> CompiledGuide | None:
    if params.guide is None:
        return None
    if guides is None:
        raise _invalid("this engine does not guide answers by a schema or regular expression")
    return guides.compile(params.guide)


def _prompt_ids(request: Request, tokenizer: EngineTokenizer, most: int, limit: str) -> list[int]:
    if request.prompt is not None and request.prompt_ids is not None:
        raise _invalid("prompt and prompt_ids exclude each other")
    if request.prompt_ids is not None:
        return list(request.prompt_ids)
    if not request.prompt:  # its special tokens would make a prompt that nobody wrote
        return []
    try:
        utf8 = request.prompt.encode()
    except UnicodeEncodeError:
        raise _invalid("the prompt holds half of a surrogate pair, which is not text") from None
    # Tokenizing is done between steps, and takes longer the longer the text: what cannot fit is refused unread.
    least = tokenizer.least_tokens(utf8)
    if least > most:
        raise _invalid(
            f"the prompt has {len(utf8):,} bytes, which are {least:,} tokens or more; this engine takes at most {limit}"
        )
    return tokenizer.encode(request.prompt)


def _invalid(message: str) -> RequestError:
    return RequestError("invalid_request", message)
