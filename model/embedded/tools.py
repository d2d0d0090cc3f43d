"""Calls of tools, in the form of the Qwen3.5 template."""

import json

from facts import expand

_CITIES = "Oslo Paris Rome Berlin Madrid Lima Cairo Tokyo Delhi Vienna Prague Dublin Athens Quito Hanoi Seoul".split()
_FILES = "notes.txt todo.md readme.md list.csv log.txt plan.md data.json draft.txt main.c".split()
_SKIES = "sunny cloudy rainy windy foggy clear".split()


def _tool(name, description, **parameters):
    properties = {key: {"type": kind, "description": about} for key, (kind, about) in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _weather(rng):
    city = rng.choice(_CITIES)
    ask = f"(what is the weather (in|like in) {city}|how is the weather in {city}|weather in {city}|is it warm in {city}|tell me the weather in {city})"
    degrees, sky = rng.randrange(-5, 35), rng.choice(_SKIES)
    return ask, {"city": city}, f"{degrees} degrees, {sky}", f"In {city} it is {sky}, with {degrees} degrees."


def _time(rng):
    city = rng.choice(_CITIES)
    ask = f"(what time is it in {city}|tell me the time in {city}|how late is it in {city}|time in {city})"
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    return ask, {"city": city}, clock, f"In {city} it is {clock}."


def _lines(rng):
    path = rng.choice(_FILES)
    ask = f"(how many lines has {path}|how long is {path}|count the lines of {path}|number of lines in {path})"
    count = rng.randrange(1, 400)
    return ask, {"path": path}, str(count), f"The file {path} has {count} lines."


def _slots(rng):
    busy, total = rng.randrange(0, 9), rng.choice([8, 16])
    ask = "(how many slots are busy|what is the load|is the daemon busy|ask the daemon for its load)( now| right now|)"
    return ask, {}, f"busy {busy}, configured {total}", f"{busy} of {total} slots are busy."


_TOOLS = [
    (_tool("get_weather", "Current weather of a city", city=("string", "Name of the city")), _weather),
    (_tool("get_time", "Local time of a city", city=("string", "Name of the city")), _time),
    (_tool("count_lines", "Number of lines of a file", path=("string", "Path of the file")), _lines),
    (_tool("get_load", "How many slots of the daemon are busy"), _slots),
]


def tool_json(tool):
    return json.dumps(tool, ensure_ascii=False)


def call_text(name, arguments):
    body = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>"


def example(rng):
    """(tools on offer, question, reasoning, name, arguments, result, reasoning after it, answer)"""
    offered = rng.sample(_TOOLS, rng.choice([1, 1, 2]))
    tool, make = rng.choice(offered)
    name = tool["function"]["name"]
    ask, arguments, result, answer = make(rng)
    question = expand(ask, rng)
    question = question[0].upper() + question[1:] + rng.choice(["?", "?", "", "."])
    return [t for t, _ in offered], question, f"I call {name} for this.", name, arguments, result, "The tool answered.", answer


def offers():
    """All tools there are."""
    return [tool for tool, _ in _TOOLS]
