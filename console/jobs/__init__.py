"""Jobs: who asks for them, who takes them, and what becomes of them."""

from __future__ import annotations

from .claims import Claim, LeaseLostError, Worklist
from .requests import NewJob, cancel_job, enqueue, retry_job

__all__ = ["Claim", "LeaseLostError", "NewJob", "Worklist", "cancel_job", "enqueue", "retry_job"]
