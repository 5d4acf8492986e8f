from __future__ import annotations

from collections import deque

from roundhouse.serve.engine.page_holders import PageHolders
from roundhouse.serve.engine.request import Chunk, Output, Request
from roundhouse.serve.engine.status import Status
from roundhouse.serve.process.messages import Cancel, FromClient, FromEngine, Outputs, Pages
from roundhouse.serve.process.service import Service


class CountingLoop:
    """Each request takes as many steps as its prompt has letters."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}
        self.integrity_checks = 0
        self.said: list[list[str]] = []
        """Who was there whenever it was asked about pages."""

    @property
    def has_work(self) -> bool:
        return bool(self.left)

    def submit(self, request: Request) -> None:
        self.left[request.request_id] = len(request.prompt or "")

    def cancel(self, request_id: str) -> None:
        self.left.pop(request_id, None)

    def step(self) -> list[Output]:
        outputs: list[Output] = []
        for request_id in list(self.left):
            self.left[request_id] -= 1
            done = self.left[request_id] == 0
            if done:
                del self.left[request_id]
            outputs.append(
                Chunk(
                    request_id=request_id,
                    text="x",
                    token_ids=[1],
                    prompt_tokens=1,
                    completion_tokens=1,
                    finish_reason="length" if done else None,
                )
            )
        return outputs

    def status(self) -> Status:
        return Status(
            running=len(self.left),
            waiting=0,
            pages_free=8,
            pages_used=len(self.left),
            pages_quarantined=0,
            tokens_in=0,
            tokens_out=0,
            guard="off",
            tag_checks=0,
            tag_mismatches=0,
        )

    def page_holders(self) -> PageHolders:
        self.said.append(sorted(self.left))
        return PageHolders(pages=0, lengths=b"", states=b"", tags=b"", held_by=b"", groups=[])

    def check_integrity(self) -> None:
        self.integrity_checks += 1


class ListInbox:
    def __init__(self, *messages: FromClient) -> None:
        self.messages = deque(messages)
        self.waits: list[float] = []

    def take(self, timeout_s: float) -> FromClient | None:
        self.waits.append(timeout_s)
        return self.messages.popleft() if self.messages else None


def chunks(sent: list[FromEngine]) -> list[str]:
    return [output.request_id for message in sent if isinstance(message, Outputs) for output in message.outputs]


def test_takes_everything_that_arrived_before_a_step() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    service = Service(loop, ListInbox(Request(request_id="a", prompt="xx"), Request(request_id="b", prompt="x")), sent.append)
    service.turn()
    assert chunks(sent) == ["a", "b"]
    service.turn()
    assert chunks(sent) == ["a", "b", "a"]


def test_a_step_is_one_message_and_one_without_outputs_is_none() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    service = Service(loop, ListInbox(Request(request_id="a", prompt="x"), Request(request_id="b", prompt="x")), sent.append)
    service.turn()
    (message,) = (message for message in sent if isinstance(message, Outputs))
    assert len(message.outputs) == 2
    loop.left["silent"] = 2
    loop.step = list  # type: ignore[method-assign]
    service.turn()
    assert chunks(sent) == ["a", "b"]


def test_a_cancelled_request_takes_no_further_step() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    inbox = ListInbox(Request(request_id="a", prompt="xxxx"))
    service = Service(loop, inbox, sent.append)
    service.turn()
    inbox.messages.append(Cancel(request_id="a"))
    service.turn()
    assert chunks(sent) == ["a"]
    assert not loop.has_work


def test_whoever_asks_about_pages_hears_it_before_the_step_and_once() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    service = Service(loop, ListInbox(Pages(), Request(request_id="a", prompt="x"), Pages()), sent.append)
    service.turn()
    assert loop.said == [["a"]]
    assert [type(message) for message in sent[:2]] == [PageHolders, Outputs]
    service.turn()
    assert loop.said == [["a"]]


def test_whoever_asks_an_idle_engine_is_answered_at_once() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    Service(loop, ListInbox(Pages()), sent.append).turn()
    assert loop.said == [[]]
    assert isinstance(sent[0], PageHolders)


def test_checks_integrity_and_reports_once_when_it_goes_idle() -> None:
    loop, sent = CountingLoop(), list[FromEngine]()
    service = Service(loop, ListInbox(Request(request_id="a", prompt="x")), sent.append)
    service.turn()
    before = len([message for message in sent if isinstance(message, Status)])
    for _ in range(3):
        service.turn()
    reports = [message for message in sent if isinstance(message, Status)]
    assert loop.integrity_checks == 1
    assert len(reports) == before + 1
    assert reports[-1].pages_used == 0


def test_waits_for_a_message_only_when_there_is_nothing_to_do() -> None:
    loop = CountingLoop()
    inbox = ListInbox(Request(request_id="a", prompt="xx"))
    service = Service(loop, inbox, lambda _: None)
    service.turn()
    inbox.waits.clear()
    service.turn()
    assert inbox.waits == [0.0]
    service.turn()  # goes idle
    inbox.waits.clear()
    service.turn()
    assert inbox.waits[0] > 0
