"""From an order to what serves it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from roundhouse.build.home import Home
from roundhouse.build.store import EngineStore
from roundhouse.serve.addresses import Endpoints, Ports
from roundhouse.serve.deployment import Deployment
from roundhouse.serve.openai.api_keys import ApiKeys
from roundhouse.serve.remote import RemoteDeployment, RemoteTriton

from ..deployments.settings import DeploymentSettings
from .folder import Order
from .keeping import Served

__all__ = ["make_served", "remote_triton"]


def make_served(order: Order, secrets: dict[str, str], on_log: Callable[[str], None]) -> Callable[[Endpoints | None], Served]:
    """What makes the deployment of an order, again and again.

    Args:
        order: what to run.
        secrets: in clear.
        on_log: gets each line of Triton's log.
    """
    settings, home = order.settings, Home(order.home)

    def make(before: Endpoints | None) -> Served:
        """Where it answered before, it answers again: what clients were told stays true."""
        engine = EngineStore(home).open(settings.engine_id)
        keys = ApiKeys([secrets["api_key"]]) if settings.keyed else None
        if settings.kind == "remote":
            return RemoteDeployment(
                engine,
                settings.name,
                order.deployment_id,
                remote_triton(settings, secrets),
                host=settings.address,
                port=_port(before.openai) if before else settings.openai,
                overrides=settings.overrides,
                api_keys=keys,
                tool_form=settings.tool_form,
            )
        return Deployment(
            [engine],
            home,
            ports=_ports(settings, before),
            names=[settings.name],
            overrides=settings.overrides,
            api_keys=keys,
            tool_form=settings.tool_form,
            on_log=on_log,
        )

    return make


def remote_triton(settings: DeploymentSettings, secrets: dict[str, str]) -> RemoteTriton:
    """The server that a remote deployment is loaded into."""
    control = {settings.control_header: secrets["control_value"]} if settings.control_header else {}
    return RemoteTriton(settings.triton_url or "", settings.triton_grpc or "", settings.triton_metrics or "", control=control)


def _ports(settings: DeploymentSettings, before: Endpoints | None) -> Ports:
    if before is None:
        return Ports(
            host=settings.address, http=settings.http, grpc=settings.grpc, metrics=settings.metrics, openai=settings.openai
        )
    return Ports(
        host=settings.address,
        http=_port(before.http),
        grpc=_port(f"//{before.grpc}"),
        metrics=_port(before.metrics),
        openai=_port(before.openai),
    )


def _port(url: str) -> int:
    return urlsplit(url).port or 0
