"""Single questions of an evaluation, from its items file: the wrong ones first."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from roundhouse.serve.accuracy.records import Item

from ..models import RecordFile
from ..paging import Paged, PageOf

__all__ = ["ItemShow", "ItemsFound", "items_of"]

ItemShow = Literal["all", "wrong", "lost", "won"]
"""``wrong``: answered wrongly; ``lost``: the base was right, and this is wrong; ``won``: the other way round."""
_FILE = "items.jsonl"
_MOST_BYTES = 64 * 2**20
"""Of what the file holds: more is not read for a page."""


class ItemsFound(BaseModel):
    """A part of a task's questions."""

    model_config = ConfigDict(frozen=True)

    items: Paged[Item]
    counts: dict[ItemShow, int]
    unreadable: int
    """Lines that are none of this version's items."""
    is_cut: bool
    """Whether the file holds more than is read here."""


def items_of(session: Session, evaluation_id: str, task: str, show: ItemShow, page: PageOf) -> ItemsFound | None:
    """A page of a task's questions; None where no items were kept. One statement.

    Args:
        session: where to read.
        evaluation_id: of the evaluation.
        task: its name.
        show: which of them.
        page: which part of these.
    """
    wanted = select(RecordFile.content).where(RecordFile.record_id == evaluation_id, RecordFile.name == _FILE)
    packed = session.scalar(wanted)
    if packed is None:
        return None
    text, is_cut = _unpacked(packed)
    found, unreadable = _read(text, task)
    counts: dict[ItemShow, int] = {each: sum(_fits(item, each) for item in found) for each in ("all", "wrong", "lost", "won")}
    fitting = sorted((item for item in found if _fits(item, show)), key=_worst_first)
    begin = (page.number - 1) * page.size
    part = tuple(fitting[begin : begin + page.size])
    items = Paged[Item](items=part, total=len(fitting), page=page.number, size=page.size)
    return ItemsFound(items=items, counts=counts, unreadable=unreadable, is_cut=is_cut)


def _unpacked(packed: bytes) -> tuple[bytes, bool]:
    """What a gzip file holds, up to the limit: it may be far larger than it is packed."""
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(packed, _MOST_BYTES)
    except zlib.error:
        return b"", False
    return text, bool(reader.unconsumed_tail)


def _read(text: bytes, task: str) -> tuple[list[Item], int]:
    found, unreadable = [], 0
    for line in _lines(text):
        try:
            item = Item.model_validate_json(line)
        except ValidationError:
            unreadable += 1
            continue
        if item.task == task:
            found.append(item)
    return found, unreadable


def _lines(text: bytes) -> Iterator[bytes]:
    """Whole lines: the last one may be cut."""
    yield from (line for line in io.BytesIO(text) if line.endswith(b"\n"))


def _fits(item: Item, show: ItemShow) -> bool:
    if show == "all":
        return True
    if show == "wrong":
        return _is_wrong(item.score, item)
    if item.base_score is None:
        return False
    was_wrong, is_wrong = _is_wrong(item.base_score, item), _is_wrong(item.score, item)
    return is_wrong and not was_wrong if show == "lost" else was_wrong and not is_wrong


def _is_wrong(score: float, item: Item) -> bool:
    """Of questions that are right or wrong; a sum over tokens is neither."""
    return item.tokens is None and score < 1


def _worst_first(item: Item) -> tuple[float, float, int]:
    """What was lost against the base before what both got wrong."""
    each = item.tokens or 1
    return item.score / each, -(item.base_score or 0.0) / each, item.number
