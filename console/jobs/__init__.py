"""Jobs: who asks for them, who takes them, and what becomes of them."""

from __future__ import annotations

from .claim import LEASE, Claim, LeaseLostError
from .claims import Worklist
from .requests import NewJob, cancel_job, enqueue, retry_job

__all__ = ["LEASE", "Claim", "LeaseLostError", "NewJob", "Worklist", "cancel_job", "enqueue", "retry_job"]
