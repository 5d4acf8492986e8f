"""What the web process holds for all requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastapi import Request

from ..access.first_account import FirstAccountLink
from ..access.login_throttle import LoginThrottle
from ..access.logins import Logins
from ..database.database import Database
from ..models_allowed import AllowedModels
from ..settings import ConsoleSettings
from .rendering import Templates
from .request_metrics import RequestMetrics

__all__ = ["WebState", "state_of"]


@dataclass(frozen=True)
class WebState:
    """Everything that routes share."""

    settings: ConsoleSettings
    database: Database
    templates: Templates
    logins: Logins
    first_account: FirstAccountLink
    login_throttle: LoginThrottle = field(default_factory=LoginThrottle)
    requests: RequestMetrics = field(default_factory=RequestMetrics)

    @property
    def models(self) -> AllowedModels:
        """Which models may be read."""
        return AllowedModels(self.settings.model_folders, self.settings.home)


def state_of(request: Request) -> WebState:
    """The state of the application that a request came to."""
    state: WebState = request.app.state.roundhouse
    return state
