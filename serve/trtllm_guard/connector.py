"""What TensorRT-LLM imports in every rank as its KV connector. It connects nothing: it puts the page check in place.

The LLM arguments name it::

    kv_connector_config:
      connector_module: roundhouse.serve.trtllm_guard.connector
      connector_scheduler_class: GuardScheduler
      connector_worker_class: GuardWorker

A rank constructs its worker after the model's weights are loaded, and before its KV cache manager is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from roundhouse.build.trtllm.versions import installed_version
from roundhouse.errors import RoundhouseError, SetupError

from . import gate
from .check import StepCheck
from .handshake import agree
from .install import create_check, install, touched
from .protocols import Communicator
from .settings import GuardSettings, settings_from
from .telling import GuardServer

if TYPE_CHECKING:
    import torch

__all__ = ["GuardScheduler", "GuardWorker"]


class GuardWorker:
    """One for each rank. What goes wrong in one is told at the next handshake, so that all ranks end alike.

    Args:
        llm_args: ``TorchLlmArgs``.
    """

    def __init__(self, llm_args: Any) -> None:
        # TensorRT-LLM constructs this in a thread that need not know the engine's communicator: no handshake here.
        self._stage = 0
        self._settings = GuardSettings()
        self._check: StepCheck | None = None
        self._server: GuardServer | None = None
        self._problem: str | None = None
        try:
            self._settings = settings_from()
            self._check = create_check(self._settings)
            _put_in_place(self._check, llm_args)
        except RoundhouseError as error:
            self._problem = str(error)

    def register_forward_pass_callable(self) -> None:
        """Called right after construction. TensorRT-LLM would call what this answers at the end of each step: nothing."""
        self._agree()

    def register_kv_caches(self, kv_cache_tensor: torch.Tensor) -> None:
        """Called when manager and executor are made, before the executor runs: the check must be about these pages.

        Raises:
            ServeError: some rank has no check in place.
        """
        if self._check is not None and not self._problem and not self._check.knows(kv_cache_tensor):
            self._problem = "the executor's KV pages are not those of a manager that notes its grants"
        ranks = self._agree()
        if self._check is not None:
            self._check.state.ranks = ranks

    def _agree(self) -> int:
        """The next handshake. Rank 0 begins to answer probes before the first."""
        ranks: Communicator = importlib.import_module("tensorrt_llm._utils").mpi_comm()
        if self._check is not None and ranks.rank == 0 and self._server is None and not self._problem:
            self._check.write_events()
            try:
                self._server = GuardServer(self._check.state, self._settings.address)
            except RoundhouseError as error:
                self._problem = str(error)
        agree(ranks, self._stage, self._problem, wait_s=self._settings.wait_s)
        self._stage += 1
        return ranks.size

    def bind_connector_meta(self, metadata: object) -> None:
        """There is none."""

    def get_connector_meta(self) -> object:
        """There is none."""
        return None

    def _clear_connector_meta(self) -> None:
        """There is none."""

    def start_load_kv(self, stream: Any) -> None:
        """Nothing is loaded from elsewhere."""

    def wait_for_layer_load(self, layer_idx: int, stream: Any) -> None:
        """Nothing is loaded from elsewhere."""

    def save_kv_layer(self, layer_idx: int, stream: Any) -> None:
        """Nothing is saved elsewhere."""

    def wait_for_save(self, stream: Any) -> None:
        """Nothing is saved elsewhere."""

    def get_finished(self, finished_gen_req_ids: list[int], started_loading_req_ids: list[int]) -> tuple[list[int], list[int]]:
        """Nothing is under way."""
        return [], []


class GuardScheduler:
    """In rank 0. It matches nothing, loads nothing and saves nothing.

    Args:
        llm_args: ``TorchLlmArgs``.
    """

    def __init__(self, llm_args: Any) -> None:
        pass

    def build_connector_meta(self, scheduler_output: object) -> object:
        """There is none."""
        return None

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """No token can be loaded from elsewhere."""
        return 0, False

    def request_finished(self, request: Any, cache_block_ids: list[int]) -> bool:
        """Nothing is saved after a request has ended: its blocks are free at once."""
        return False

    def update_state_after_alloc(self, request: Any, block_ids: list[int]) -> None:
        """Nothing is loaded into them."""


def _put_in_place(check: StepCheck, llm_args: Any) -> None:
    problem = gate.version_problem(installed_version())
    problems = [problem] if problem else [*gate.argument_problems(llm_args), *gate.surface_problems()]
    if problems:
        raise SetupError("; ".join(problems))
    install(check, touched())
