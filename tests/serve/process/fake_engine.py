"""Stands in for the engine process: the same sockets and messages, no model. A prompt says what to do."""

from __future__ import annotations

import argparse
import os
import sys
import threading

import msgspec
import zmq

from roundhouse.serve.engine.request import Chunk, Failure
from roundhouse.serve.engine.status import Status
from roundhouse.serve.process.messages import Cancel, FromClient, Ready


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
    outbox.send(msgspec.msgpack.encode(Ready(engine_id="fake", pages=1, page_tokens=1, max_seq_len=1, guard="tags")))
    status = dict.fromkeys((field.name for field in msgspec.structs.fields(Status)), 0)
    outbox.send(msgspec.msgpack.encode(Status(**status)))
    while True:
        message = msgspec.msgpack.decode(inbox.recv(), type=FromClient)
        if isinstance(message, Cancel):
            answer: Chunk | Failure = Failure(request_id=message.request_id, code="cancelled", message="cancelled")
        elif message.prompt == "die":
            os._exit(7)
        elif message.prompt == "hang":
            continue
        elif message.prompt == "garble":
            outbox.send(b"no message")
            continue
        else:
            answer = Chunk(
                request_id=message.request_id,
                text=message.prompt or "",
                token_ids=[1],
                prompt_tokens=1,
                completion_tokens=1,
                finish_reason=None if message.prompt == "begin" else "length",
            )
        outbox.send(msgspec.msgpack.encode(answer))


main()
