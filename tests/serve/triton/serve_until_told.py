"""Serves the engine folder named first until told to stop; says ``ready`` when it is."""

from __future__ import annotations

import sys
from pathlib import Path

from roundhouse.build.engine import Engine
from roundhouse.build.home import Home
from roundhouse.serve.deployment import Deployment, Ports, run_deployment


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


deployment = Deployment(
    [Engine.open(Path(sys.argv[1]))], Home(Path(sys.argv[2])), ports=Ports(http=0, grpc=0, metrics=0, openai=0)
)
run_deployment(deployment, on_ready=lambda endpoints: say(f"ready {endpoints.model}"))
say("ended")
