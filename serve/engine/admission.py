"""From a request to a sequence, or to the reason why it cannot be served."""

from __future__ import annotations

import math

from roundhouse.errors import RequestError

from .detokenize import TextStream
from .request import Request, SamplingParams
from .sampling import Sampler
from .sequence import Sequence
from .tokenizer import EngineTokenizer

__all__ = ["check_sampling", "make_sequence"]


def make_sequence(request: Request, tokenizer: EngineTokenizer, *, vocab: int, max_seq_len: int, pool_tokens: int) -> Sequence:
    """Check a request and make its sequence. ``max_new`` is 0 when it asks for no tokens.

    Only a prompt that is too long is an error: a request may ask for more than there is room for, and gets what there is.

    Args:
        request: as it came from the client.
        tokenizer: the model's.
        vocab: token ids of the model are below this.
        max_seq_len: prompt and generated tokens together; more are not generated.
        pool_tokens: tokens that the whole KV pool holds. The last generated token needs no place in it.

    Raises:
        RequestError: ``invalid_request``, naming the value and what is allowed.
    """
    params = request.sampling
    check_sampling(params)
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
        sampler=Sampler(params),
        text=TextStream(tokenizer, params.stop),
    )


def check_sampling(params: SamplingParams) -> None:
    """See that the parameters can be followed.

    Raises:
        RequestError: ``invalid_request``, naming the value and what is allowed.
    """
    if params.max_tokens < 0:
        raise _invalid(f"max_tokens is {params.max_tokens}; it must be 0 or more")
    if not (math.isfinite(params.temperature) and params.temperature >= 0):
        raise _invalid(f"temperature is {params.temperature}; it must be a finite number, 0 (greedy) or more")
    if not 0 < params.top_p <= 1:
        raise _invalid(f"top_p is {params.top_p}; it must be above 0 and at most 1")
    if params.top_k < 0:
        raise _invalid(f"top_k is {params.top_k}; it must be 0 (every token) or more")
    if params.seed is not None and not 0 <= params.seed < 2**64:
        raise _invalid(f"seed is {params.seed}; it must be in 0..2**64 - 1")
    if "" in params.stop:
        raise _invalid("a stop string is empty")


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
