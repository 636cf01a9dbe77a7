"""A seeded generator whose state is JSON, so that a run stopped anywhere goes on with the same draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from oreo_lakehouse.errors import StoreError


def new_generator(seed: int | Sequence[int]) -> np.random.Generator:
    """A generator of our own; PCG64's stream is the same on every machine.

    What is drawn now and then takes a fresh one from (seed, what, queries seen): nothing to remember, and one draw more
    or less changes no other.
    """
    return np.random.Generator(np.random.PCG64(seed))


def generator_to_json(generator: np.random.Generator) -> dict[str, Any]:
    """The generator's state. Its 128-bit numbers travel as text, which every JSON reader keeps exactly."""
    state = cast("dict[str, Any]", generator.bit_generator.state)
    inner = cast("dict[str, int]", state["state"])
    return {
        "state": str(inner["state"]),
        "inc": str(inner["inc"]),
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }


def generator_from_json(document: dict[str, Any]) -> np.random.Generator:
    """The generator that `generator_to_json` described.

    Raises:
        StoreError: the document is not one of ours.
    """
    generator = new_generator(0)
    try:
        generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": int(document["state"]), "inc": int(document["inc"])},
            "has_uint32": int(document["has_uint32"]),
            "uinteger": int(document["uinteger"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError("malformed state: the random generator cannot be read") from error
    return generator
