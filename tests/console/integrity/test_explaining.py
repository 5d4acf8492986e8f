"""Integrity events in words: the shapes that docs/page-tags.md tells apart."""

from __future__ import annotations

from typing import Any

import pytest

from roundhouse.console.database.base import utc_now
from roundhouse.console.integrity.explaining import explain
from roundhouse.console.integrity.records import EventRow

OWN = {"request_id": "mine", "tag": 2, "step": 1, "how": "granted"}
OTHER = {"request_id": "other", "tag": 7, "step": 4, "how": "granted"}
EARLIER = {"request_id": "earlier", "tag": 1, "step": 1, "how": "granted"}


def event(*holders: dict[str, Any], **changes: Any) -> EventRow:
    fields: dict[str, Any] = {
        "id": 1, "at": utc_now(), "host": "one", "engine_id": "e", "deployment_id": None, "deployment_name": None,
        "event": "mine/4/0", "kind": "tag", "request_id": "mine", "answer": 0, "step": 4, "column": 1, "page": 1,
        "expected_tag": 2, "found_tag": 7, "last_holders": list(holders),
    }  # fmt: skip
    return EventRow(**(fields | changes))


@pytest.mark.parametrize(
    ("told", "reading"),
    [
        (event(OTHER, OWN), "other was granted it in step 4: somebody freed it too early, or granted it twice"),
        (event({**OTHER, "how": "shared"}, OWN), "other was shared it"),
        (event(OWN, found_tag=0), "freed under the request, and nobody has it yet"),
        (event({**OWN, "step": 4}, found_tag=0), "the grant never reached the tag table"),
        (event(OTHER, found_tag=7), "never had this page under that tag"),
        (event(OWN, found_tag=None), "names what is not there"),
        (event(page=None, found_tag=None), "names what is not there"),
        (event(OWN, found_tag=9), "tag was changed"),
        (event(OWN, kind="count"), "page count of this row was not the scheduler's"),
        (event(OWN, EARLIER, kind="content", found_tag=2), "request earlier, which held the page before, is the suspect"),
        (event(OWN, kind="content", found_tag=2), "its holder's write never came"),
    ],
)
def test_each_shape_is_read_as_the_guide_reads_it(told: EventRow, reading: str) -> None:
    assert reading in explain(told).reading


def test_it_says_what_was_expected_found_and_done() -> None:
    said = explain(event(OTHER, OWN))
    assert said.expected == "page 1, the request's page 2, carrying tag 2"
    assert said.found == "tag 7"
    assert [(each.request_id, each.is_stopped) for each in said.holders] == [("other", False), ("mine", True)]
    assert "before anything was computed from the page" in said.done
    assert "quarantined" in said.done
    assert "quarantined" not in explain(event(kind="count")).done
    assert explain(event(found_tag=0)).found == "tag 0: nobody holds the page"
