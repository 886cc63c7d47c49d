# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The one decoder of what comes from outside as JSON: values of the types they are declared with.

A value of another type, text that is no JSON and nesting without end are refused here, in one line;
what is behind this needs no checks of types.
"""

from __future__ import annotations

import re
import reprlib
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints

from conv_compiler.errors import ConvError, did_you_mean

T = TypeVar("T")

# The decoder's words, and ours for what it expected.
_EXPECTED = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*)`)?")
_WORDS = MappingProxyType(
    {
        "str": "text",
        "int": "an integer",
        "float": "a number",
        "bool": "true or false",
        "array": "a list",
        "object": "name: value pairs",
        "int | array": "integers",
        "int | str": "a number or a word",
        "int | str | array": "numbers or words",
    }
)


def decoded(text: str | bytes, what: str, refusal: type[ConvError]) -> Any:
    """The value of a JSON text; `refusal`, of `what`, where it is none."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise refusal(f"{what}: {_reason(error)}; mend it") from None


def typed(value: Any, kind: type[T], what: str, refusal: type[ConvError]) -> T:
    """A decoded value as a `kind`, a dataclass or any type hint; lists become tuples.

    Nothing is converted from one type to another: no text is a number, no truth value is one.
    """
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise refusal(
            f"{what} {reprlib.repr(value)}: {_reason(error)}; give what is expected"
        ) from None


def fields(
    values: dict[str, Any], kind: type, what: str, refusal: type[ConvError], **hints: Any
) -> dict[str, Any]:
    """Each of the values as the field of `kind` of its name, or as its hint among `hints`."""
    declared = {**_hints(kind), **hints}
    if unknown := sorted(set(values) - set(declared)):
        near = did_you_mean(unknown[0], declared)
        raise refusal(f"{what}{unknown[0]}: not known; {near}known: {', '.join(declared)}")
    return {
        name: typed(value, declared[name], f"{what}{name}", refusal)
        for name, value in values.items()
    }


@cache
def _hints(kind: type) -> MappingProxyType[str, Any]:
    return MappingProxyType(get_type_hints(kind))


def _reason(error: Exception) -> str:
    """The decoder's words within a sentence, without its quotes."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    text = str(error)
    if match := _EXPECTED.fullmatch(text):
        wanted, got, at = match.groups()
        return f"{got}{f' at {at}' if at else ''} in place of {_WORDS.get(wanted, wanted)}"
    return text[:1].lower() + text[1:].replace("`", "")
