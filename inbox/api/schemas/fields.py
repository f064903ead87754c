"""Members and parameters that several calls take, each with its form."""

import re
from typing import Any

from marshmallow import Schema, ValidationError
from marshmallow.fields import Boolean, Field, Integer, String
from marshmallow.validate import Length, Range, Regexp

from inbox.api.examples import EVENT_TYPE, STORED_AT
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.inboxes import INBOX_NAME
from inbox.domain.tenants import MAX_NAME
from inbox.domain.timestamps import clamp_timestamp, parse_timestamp

# As far as every language's patterns go; Unicode knows more that cannot be printed.
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"
AT_MOST = {"description": "At most so many; fewer come where they are large.", "examples": [100]}
LEASE_SECONDS = Range(1, 43_200)
DELAY_SECONDS = Range(0, 43_200)


class FormedText(String):
    """Text of one form, which the OpenAPI shows as a pattern that every language reads the same."""

    def __init__(self, pattern: str, error: str, *, metadata: dict[str, Any], **options: Any) -> None:
        form = Regexp(rf"{pattern}\Z", error=error)
        super().__init__(validate=form, metadata={"pattern": f"^{pattern}$"} | metadata, **options)


class Name(String):
    """For people to read."""

    def __init__(self, least: int = 0, **options: Any) -> None:
        metadata = {"pattern": PRINTABLE} | options.pop("metadata", {})
        super().__init__(validate=[Length(least, MAX_NAME), _check_printable], metadata=metadata, **options)


def _check_printable(text: str) -> None:
    if not text.isprintable():
        raise ValidationError("Has to have printable characters only.")


class EventType(FormedText):
    FORM = "[A-Za-z0-9._:/-]{1,128}"

    def __init__(self, **options: Any) -> None:
        super().__init__(
            self.FORM,
            "Has to be 1 to 128 of A-Z a-z 0-9 . _ : / - and nothing else.",
            metadata={"examples": [EVENT_TYPE]} | options.pop("metadata", {}),
            **options,
        )


class EventTypePattern(FormedText):
    def __init__(self) -> None:
        super().__init__(
            "[A-Za-z0-9._:/*-]{1,128}",
            "Has to be 1 to 128 of A-Z a-z 0-9 . _ : / - * and nothing else.",
            metadata={"examples": ["order.*"]},
        )


class InboxName(FormedText):
    def __init__(self) -> None:
        super().__init__(
            INBOX_NAME,
            "Is not the name of an inbox.",
            load_default=DEFAULT_INBOX,
            metadata={"description": "Which inbox's copy.", "examples": [DEFAULT_INBOX, "crm"]},
        )


class HeaderText(String):
    """A header's value as UTF-8: WSGI hands it over as if it were Latin-1, and a body's member is not."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        try:
            return str(super()._deserialize(value, *args, **kwargs)).encode("latin-1").decode()
        except UnicodeError:
            raise ValidationError("Has to be UTF-8.") from None


class Flag(Boolean):
    """A parameter that is `true` or `false`; marshmallow alone also accepts `yes`, `1` and `T`."""

    def __init__(self, **options: Any) -> None:
        message: dict[str, Any] = {"invalid": "Must be true or false."}
        super().__init__(truthy={"true"}, falsy={"false"}, error_messages=message, **options)


class WholeNumber(Integer):
    """A parameter of plain digits: what else Python takes for a number (1_0, ٣, +5) was meant as something else."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if not re.fullmatch("[0-9]{1,9}", str(value), re.ASCII):
            raise self.make_error("invalid")
        return int(value)


class JSONWholeNumber(Integer):
    """A member that is a number without fraction and exponent; a string of digits is none."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        number = exact_json.whole_number(value)
        if number is None:
            raise self.make_error("invalid")
        return number


class JSONFlag(Boolean):
    """A member that is `true` or `false`; marshmallow alone also takes texts and numbers for it."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Moment(Field[int]):
    """Epoch milliseconds or ISO 8601, as parameter or member."""

    def __init__(self, description: str, example: str = STORED_AT, **options: Any) -> None:
        either = [
            {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999},
            {"type": "string", "pattern": "^[0-9]{1,15}$"},
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "date"},
            *([{"type": "null"}] if options.get("allow_none") else []),
        ]
        description += " Epoch milliseconds or ISO 8601."
        super().__init__(metadata={"description": description, "anyOf": either, "examples": [example]}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if isinstance(value, str):
            moment = parse_timestamp(value)
        else:
            number = exact_json.whole_number(value)
            moment = None if number is None else clamp_timestamp(number)
        if moment is None:
            raise ValidationError("Has to be epoch milliseconds or ISO 8601.")
        return moment


class SmallBody(Schema):
    """A body that is no event: its limit has nothing to do with how small an event has to be."""

    max_bytes = 262_144


class NoParameters(Schema):
    """For calls where a parameter that has no effect would be misread as a limit to what happens."""
