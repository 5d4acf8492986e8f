"""The settings page: what this process runs with, and what admins change."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import ORIGIN, BrowserMaker
from sqlalchemy import select

from roundhouse.console.database.database import Database
from roundhouse.console.models import AuditEntry, Setting
from roundhouse.console.settings_table import TableSettings, read_settings

FORM = {"gpu_hour_price": "2.5", "currency": "eur", "job_log_days": "30"}


def settings(database: Database) -> TableSettings:
    with database.reading() as session:
        return read_settings(session)


def test_an_admin_changes_them_and_it_is_written_down(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    assert settings(database) == TableSettings()
    assert admin.submit("/settings", FORM).status_code == 200
    assert settings(database) == TableSettings(gpu_hour_price=2.5, currency="EUR", job_log_days=30)
    admin.submit("/settings", FORM | {"job_log_days": ""})
    assert settings(database).job_log_days is None
    with database.reading() as session:
        changes = session.scalars(select(AuditEntry).where(AuditEntry.action == "setting.change").order_by(AuditEntry.id)).all()
    assert [(entry.subject, entry.detail) for entry in changes] == [
        ("gpu_hour_price", {"before": None, "after": 2.5}),
        ("currency", {"before": "USD", "after": "EUR"}),
        ("job_log_days", {"before": 90, "after": 30}),
        ("job_log_days", {"before": 30, "after": None}),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu_hour_price": "much"},
        {"gpu_hour_price": "0"},
        {"gpu_hour_price": "nan"},
        {"gpu_hour_price": "1e999"},
        {"currency": "euro"},
        {"job_log_days": "0"},
        {"job_log_days": "1.5"},
    ],
)
def test_a_value_that_cannot_be_changes_nothing(browser: BrowserMaker, database: Database, wrong: dict[str, str]) -> None:
    admin = browser("admin")
    answer = admin.submit("/settings", FORM | wrong)
    assert answer.status_code == 422
    (typed,) = wrong.values()
    assert f'value="{typed}"' in answer.text
    assert settings(database) == TableSettings()


def test_others_read_them(browser: BrowserMaker, database: Database) -> None:
    operator = browser("operator")
    page = operator.get("/settings").text
    assert "sqlite" in page or "postgresql" in page
    assert 'action="/settings"' in page
    assert "Admins change these." in page
    assert operator.submit("/settings", FORM).status_code == 403
    told = operator.get("/api/v1/settings").json()
    assert told["changeable"]["currency"] == "USD"
    assert told["process"]["schema_revision"].isdigit()


def test_programs_change_one_at_a_time(browser: BrowserMaker, database: Database) -> None:
    admin = browser("admin")
    headers = {"origin": ORIGIN, "x-form-token": admin.form_token()}
    answer = admin.patch("/api/v1/settings", json={"job_log_days": 7}, headers=headers)
    assert answer.json() == {"gpu_hour_price": None, "currency": "USD", "job_log_days": 7}
    wrong = admin.patch("/api/v1/settings", json={"currency": "x"}, headers=headers)
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "currency")
    assert admin.patch("/api/v1/settings", json={"colour": "red"}, headers=headers).status_code == 422


def test_what_a_newer_version_has_set_is_passed_over(browser: BrowserMaker, database: Database) -> None:
    browser("admin").submit("/settings", FORM)
    with database.writing() as session:
        known = session.get_one(Setting, "currency")
        session.add(Setting(key="from_the_future", value=[1], changed_at=known.changed_at, changed_by="x"))
    assert settings(database).currency == "EUR"


def test_the_api_is_described_to_who_may_read(browser: BrowserMaker) -> None:
    assert browser().get("/api/v1/openapi.json").status_code == 401
    assert "/api/v1/users" in browser("viewer").get("/api/v1/openapi.json").json()["paths"]


def test_plans_cost_what_is_set_unless_they_say_otherwise(browser: BrowserMaker) -> None:
    admin = browser("admin")
    plan = "/plan?model=shape%3Allama-3.1-8b&device=L40S"
    cost = "per million tokens"
    assert cost not in admin.get(plan).text
    admin.submit("/settings", FORM)
    page = admin.get(plan).text
    assert cost in page
    assert "EUR per GPU h" in page
    assert admin.get(f"{plan}&price=2.5").text.count(cost) == page.count(cost)


def test_the_model_folders_that_are_in_force_are_shown(browser: BrowserMaker, tmp_path: Path) -> None:
    viewer = browser("viewer")
    assert str(tmp_path / "home" / "models") in viewer.get("/settings").text
    assert viewer.get("/api/v1/settings").json()["process"]["model_folders"] == [str(tmp_path / "home" / "models")]
