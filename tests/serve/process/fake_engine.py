"""Stands in for the engine process: the same sockets and messages, no model. A prompt says what to do.

``die``, ``hang`` and ``garble`` do that; ``begin`` gives one piece and hangs; ``count`` gives as many numbers as tokens are
asked for, one a message, for each answer; ``show`` gives the request back as JSON; anything else is given back as it is. Of its
four pages, whoever hangs holds the first two and the prefix cache the third; after ``keep quiet`` it does not say so any more.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
import zmq

from roundhouse.serve.engine.page_holders import HolderGroup, PageHolders
from roundhouse.serve.engine.request import Chunk, Failure, Output, Request, TokenLogprob
from roundhouse.serve.engine.status import Status
from roundhouse.serve.process.messages import Cancel, FromClient, Outputs, Pages, Ready


def chunk(request: Request, text: str, **changes: Any) -> Chunk:
    given = {"token_ids": [1], "prompt_tokens": 1, "completion_tokens": 1, "finish_reason": "length"} | changes
    return Chunk(request_id=request.request_id, text=text, **given)


def count(request: Request) -> Iterator[Chunk]:
    most, wants = request.sampling.max_tokens, request.sampling.logprobs is not None
    for number in range(1, most + 1):
        for index in range(request.sampling.n):
            yield chunk(
                request,
                f"{number} ",
                index=index,
                token_ids=[number],
                completion_tokens=number,
                cached_tokens=index,
                logprobs=[TokenLogprob(number, -0.5, [])] if wants else None,
                finish_reason="length" if number == most else None,
            )


def page_holders(hanging: list[str]) -> PageHolders:
    groups = [HolderGroup([], 0, True)]
    runs = [(2, 0, 0, -1), (1, 2, 9, 0), (1, 0, 0, -1)]
    if hanging:
        groups.append(HolderGroup(hanging, 0, False))
        runs[0] = (2, 1, 7, 1)
    lengths, states, tags, held_by = zip(*runs, strict=True)
    columns = {"lengths": lengths, "tags": tags, "held_by": held_by}
    packed = {name: array("i", values).tobytes() for name, values in columns.items()}
    return PageHolders(pages=4, states=bytes(states), groups=groups, **packed)


def answers(message: Request | Cancel) -> Iterator[Output]:
    if isinstance(message, Cancel):
        yield Failure(request_id=message.request_id, code="cancelled", message="cancelled")
    elif message.prompt == "begin":
        yield chunk(message, "begin", finish_reason=None)
    elif message.prompt == "count":
        yield from count(message)
    elif message.prompt == "show":
        yield chunk(message, msgspec.json.encode(msgspec.structs.replace(message, request_id="")).decode())
    elif message.prompt != "hang":
        yield chunk(message, message.prompt or "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine")
    parser.add_argument("--settings")
    parser.add_argument("--sockets")
    options = parser.parse_args(sys.argv[sys.argv.index("--engine") :])
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    if options.engine.endswith("broken"):
        sys.exit("the engine folder is broken")
    context = zmq.Context()
    inbox, outbox = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    inbox.bind(f"ipc://{options.sockets}/requests")
    outbox.bind(f"ipc://{options.sockets}/outputs")

    def send(message: Any) -> None:
        outbox.send(msgspec.msgpack.encode(message))

    send(Ready(engine_id="fake", pages=1, page_tokens=1, max_seq_len=1, guard="tags"))
    required = (field for field in msgspec.structs.fields(Status) if field.required)
    status = Status(**dict.fromkeys((field.name for field in required), 0) | {"guard": "tags"})
    send(status)
    hanging: list[str] = []
    quiet = False
    while True:
        if not inbox.poll(1000):
            send(status)
            continue
        message = msgspec.msgpack.decode(inbox.recv(), type=FromClient)
        if isinstance(message, Pages):
            if not quiet:
                send(page_holders(hanging))
            continue
        prompt = message.prompt if isinstance(message, Request) else None
        quiet = quiet or prompt == "keep quiet"
        if prompt == "hang":
            hanging.append(message.request_id)
        if isinstance(message, Cancel) and message.request_id in hanging:
            hanging.remove(message.request_id)
        if prompt == "die":
            os._exit(7)
        if prompt == "garble":
            outbox.send(b"no message")
            continue
        for output in answers(message):
            send(Outputs([output]))


main()
