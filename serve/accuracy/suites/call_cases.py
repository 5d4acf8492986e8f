"""Tools and requests of the suite of tool calls, made of templates."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from ...measurement.draws import draw

__all__ = ["TOOLS", "CallCase", "call_case"]

_CITIES = ("Lisbon", "Oslo", "Vienna", "Nairobi", "Kyoto", "Lima")
_PEOPLE = ("Maria", "Jonas", "Aisha", "Wei")


def _tool(name: str, description: str, required: tuple[str, ...], **properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


_DATE = _text("The day, as YYYY-MM-DD.", pattern=r"^\d{4}-\d{2}-\d{2}$")

TOOLS: dict[str, dict[str, Any]] = {
    tool["function"]["name"]: tool
    for tool in (
        _tool(
            "get_weather",
            "The weather in a city now.",
            ("city",),
            city=_text("Name of the city."),
            unit=_text("Unit of temperatures.", enum=["celsius", "fahrenheit"]),
        ),
        _tool(
            "convert_currency",
            "Convert an amount of money.",
            ("amount", "from", "to"),
            **{
                "amount": {"type": "number", "minimum": 0, "description": "How much."},
                "from": _text("Currency that it is in, three letters.", pattern="^[A-Z]{3}$"),
                "to": _text("Currency that it should be in, three letters.", pattern="^[A-Z]{3}$"),
            },
        ),
        _tool(
            "create_event",
            "Put something into the calendar.",
            ("title", "date", "minutes"),
            title=_text("What it is."),
            date=_DATE,
            minutes={"type": "integer", "minimum": 1, "maximum": 1440, "description": "How long it takes."},
        ),
        _tool(
            "send_message",
            "Send a message to people.",
            ("recipients", "text"),
            recipients={"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Their names."},
            text=_text("What to say."),
            urgent={"type": "boolean", "description": "Whether it cannot wait."},
        ),
        _tool(
            "book_table",
            "Book a table in a restaurant.",
            ("restaurant", "guests"),
            restaurant=_text("Its name."),
            guests={"type": "integer", "minimum": 1, "maximum": 20, "description": "How many come."},
            date=_DATE,
        ),
        _tool(
            "set_lights",
            "Change the lights of a room.",
            ("room", "settings"),
            room=_text("Which room.", enum=["kitchen", "bedroom", "office"]),
            settings={
                "type": "object",
                "description": "What they should be.",
                "properties": {
                    "on": {"type": "boolean", "description": "Whether they are on."},
                    "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "description": "In percent."},
                },
                "required": ["on"],
                "additionalProperties": False,
            },
        ),
    )
}
"""By name, as OpenAI's API has them."""


def _weather(chance: random.Random) -> str:
    city, unit = chance.choice(_CITIES), chance.choice(("Celsius", "Fahrenheit"))
    return f"What is the weather like in {city} right now, in degrees {unit}?"


def _currency(chance: random.Random) -> str:
    before, after = chance.sample(("EUR", "USD", "JPY", "GBP", "CHF"), 2)
    return f"How much are {chance.randrange(5, 900)} {before} in {after}?"


def _event(chance: random.Random) -> str:
    what = chance.choice(("a dentist's appointment", "the team meeting", "a piano lesson"))
    day = f"2027-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    return f"Put {what} on {day} into my calendar. It takes {chance.choice((30, 45, 60, 90))} minutes."


def _message(chance: random.Random) -> str:
    one, other = chance.sample(_PEOPLE, 2)
    return f"Tell {one} and {other} that I will be {chance.randrange(5, 55)} minutes late. It is urgent."


def _table(chance: random.Random) -> str:
    place = chance.choice(("the Blue Door", "Casa Verde", "the Old Mill"))
    return f"Book a table for {chance.randrange(2, 9)} at {place}, please."


def _lights(chance: random.Random) -> str:
    room = chance.choice(("kitchen", "bedroom", "office"))
    return f"Turn the lights in the {room} on, at {chance.randrange(10, 100, 5)} percent."


_REQUESTS: dict[str, Callable[[random.Random], str]] = {
    "get_weather": _weather,
    "convert_currency": _currency,
    "create_event": _event,
    "send_message": _message,
    "book_table": _table,
    "set_lights": _lights,
}

CallCase = tuple[str, str, list[str]]
"""The tool that must be called, the request, and all tools that are offered."""


def call_case(seed: int, number: int) -> CallCase:
    """An item: tools take turns, and each is offered among two others."""
    names = list(TOOLS)
    wanted = names[number % len(names)]
    chance = draw(seed, "calls", number)
    offered = [wanted, *chance.sample([name for name in names if name != wanted], 2)]
    chance.shuffle(offered)
    return wanted, _REQUESTS[wanted](chance), offered
