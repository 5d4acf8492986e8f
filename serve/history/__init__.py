"""Records of what was measured, each a folder in the home: written as it goes, so that nothing measured is ever lost.

::

    <home>/benchmarks/<id>/        or <home>/evaluations/<id>/
        header.json                what is measured, and on what; there from the first moment
        <name>.jsonl               what came of it, a JSON object a line; each on disk before the next is measured, but for
                                   samples, which a machine without power may lose
        raw/                       files of whatever measured, compressed and limited
        lock                       held while it measures
        end.json                   how it ended; a folder without one, whose lock nobody holds, was interrupted
"""

from .home_store import HomeStore
from .reader import RecordAwayError, RecordState, read_end, read_header, read_lines, read_outcome, require_there, state_of
from .store import RecordStore
from .writer import RecordWriter

__all__ = [
    "HomeStore",
    "RecordAwayError",
    "RecordState",
    "RecordStore",
    "RecordWriter",
    "read_end",
    "read_header",
    "read_lines",
    "read_outcome",
    "require_there",
    "state_of",
]
