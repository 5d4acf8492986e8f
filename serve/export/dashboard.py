"""A Grafana dashboard of what engines count: speed, waits, KV pages, and whether every step is checked."""

from __future__ import annotations

import json
from typing import Any

from .panels import ROWS, Panel

__all__ = ["dashboard", "dashboard_text"]

_WIDTH = 24
"""Columns of Grafana's grid."""
_HEIGHT = 8
_SCHEMA = 39
"""Of Grafana 10.4 and later, which migrate it."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard_text() -> str:
    """The dashboard as a file."""
    return json.dumps(dashboard(), indent=2) + "\n"


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it. It asks which data source and which models to show."""
    return {
        "title": "Roundhouse engines",
        "uid": "roundhouse-engines",
        "tags": ["roundhouse"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source(), _models()]},
        "panels": _panels(),
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _models() -> dict[str, Any]:
    return {
        "name": "model",
        "label": "Model",
        "type": "query",
        "datasource": _SOURCE,
        "query": "label_values(roundhouse_guard_alive, model)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    top = 0
    for title, panels in ROWS.items():
        found.append(
            {"id": len(found) + 1, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": _place(0, top)}
        )
        top += 1
        width = _WIDTH // len(panels)
        for at, panel in enumerate(panels):
            place = {"x": at * width, "y": top, "w": width, "h": _HEIGHT}
            found.append({"id": len(found) + 1, "gridPos": place} | _panel(panel))
        top += _HEIGHT
    return found


def _place(left: int, top: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": _WIDTH, "h": 1}


def _panel(panel: Panel) -> dict[str, Any]:
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 40} if panel.stacked else {"fillOpacity": 5}
    thresholds: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.alarm_above is not None:
        thresholds.append({"color": "red", "value": panel.alarm_above})
    if panel.alarm_below is not None:
        thresholds = [{"color": "red", "value": None}, {"color": "green", "value": panel.alarm_below}]
    return {
        "type": "stat" if panel.now else "timeseries",
        "title": panel.title,
        "description": panel.what,
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "thresholds": {"mode": "absolute", "steps": thresholds},
                **({} if panel.now else {"custom": custom}),
            },
            "overrides": [],
        },
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
            for at, (legend, expression) in enumerate(panel.series.items())
        ],
    }
