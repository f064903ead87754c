"""Fields and schemas of requests.

Messages are the ends of sentences, which `inbox.api.request_parsing` begins with the field's name: "`limit` must be
between 1 and 500."
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import Schema, ValidationError
from marshmallow.fields import Boolean, Dict, Enum, Field, Integer, List, String
from marshmallow.validate import Length, OneOf, Range, Regexp

from inbox.api.examples import EVENT_TYPE, STORED_AT, doc, example
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX
from inbox.domain.inboxes import INBOX_NAME
from inbox.domain.tenants import MAX_NAME
from inbox.domain.timestamps import parse_timestamp

# Works in every language's regular expressions, but does not exclude all unprintable characters of Unicode.
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"
LIMIT = {"description": "Maximum number of events; fewer if payloads are large.", "examples": [100]}


def between(lowest: int, highest: int) -> Range:
    return Range(lowest, highest, error="must be between {min} and {max}")


def one_of(choices: Iterable[object]) -> OneOf:
    return OneOf([str(choice) for choice in choices], error="must be one of {choices}")


def length(lowest: int, highest: int) -> Length:
    return Length(lowest, highest, error="must have {min} to {max} characters")


def entries(lowest: int, highest: int) -> Length:
    return Length(lowest, highest, error="must have {min} to {max} entries")


LEASE_SECONDS = between(1, 43_200)
DELAY_SECONDS = between(0, 43_200)


class _RequestField(Field[Any]):
    invalid_message = "is not valid"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.error_messages |= {
            "required": "is required",
            "null": "must not be null",
            "invalid": self.invalid_message,
            "unknown": "must be one of {choices}",
        }


class Text(_RequestField, String):
    invalid_message = "must be a string"


class JSONObject(_RequestField, Dict):
    invalid_message = "must be an object"


class Array(_RequestField, List[Any]):
    invalid_message = "must be an array"


class Choice(_RequestField, Enum[Any]):
    def __init__(self, enum: Any, **options: Any) -> None:
        super().__init__(enum, by_value=Text, **options)


class PatternText(Text):
    """Text that matches a pattern, which must mean the same in every language: OpenAPI shows it."""

    def __init__(self, pattern: str, error: str, *, metadata: dict[str, Any], **options: Any) -> None:
        validate = Regexp(rf"{pattern}\Z", error=error)
        super().__init__(validate=validate, metadata={"pattern": f"^{pattern}$"} | metadata, **options)


class Name(Text):
    def __init__(self, min_length: int = 0, **options: Any) -> None:
        metadata = {"pattern": PRINTABLE} | options.pop("metadata", {})
        super().__init__(validate=[length(min_length, MAX_NAME), _check_printable], metadata=metadata, **options)


def _check_printable(text: str) -> None:
    if not text.isprintable():
        raise ValidationError("must have printable characters only")


class EventType(PatternText):
    PATTERN = "[A-Za-z0-9._:/-]{1,128}"

    def __init__(self, **options: Any) -> None:
        super().__init__(
            self.PATTERN,
            "must be 1 to 128 characters of A-Z a-z 0-9 . _ : / -",
            metadata=example(EVENT_TYPE) | options.pop("metadata", {}),
            **options,
        )


class InboxName(PatternText):
    def __init__(self) -> None:
        super().__init__(
            INBOX_NAME,
            "is not the name of an inbox",
            load_default=DEFAULT_INBOX,
            metadata=doc("The inbox to read.", DEFAULT_INBOX, "crm"),
        )


class HeaderText(Text):
    """A header's value in UTF-8, which WSGI passes as Latin-1 text."""

    def _deserialize(self, value: Any, *args: Any, **kwargs: Any) -> str:
        try:
            return str(super()._deserialize(value, *args, **kwargs)).encode("latin-1").decode()
        except UnicodeError:
            raise ValidationError("must be UTF-8") from None


class Flag(_RequestField, Boolean):
    """A parameter that is `true` or `false`. marshmallow alone also accepts `yes`, `1` and `T`."""

    invalid_message = "must be true or false"
    truthy, falsy = {"true"}, {"false"}


class JSONFlag(Flag):
    """A member that is `true` or `false`. marshmallow alone also accepts strings and numbers."""

    truthy, falsy = {True}, {False}


class WholeNumber(_RequestField, Integer):
    """A parameter of plain digits. Python alone also accepts 1_0, ٣ and +5. `validate` checks the range."""

    invalid_message = "must be a whole number"

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        if not re.fullmatch("[0-9]{1,9}|-?[1-9][0-9]{0,99}", str(value), re.ASCII):
            raise self.make_error("invalid")
        return int(value)


class JSONWholeNumber(WholeNumber):
    """A member that is a number without fraction or exponent, and not a string of digits."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> int:
        return super()._deserialize(exact_json.whole_number(value))


class Timestamp(_RequestField):
    """A parameter or member in epoch milliseconds or ISO 8601. Loads as epoch milliseconds."""

    invalid_message = "must be epoch milliseconds or ISO 8601"

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
        text = value if isinstance(value, str) else str(exact_json.whole_number(value))
        timestamp_ms = parse_timestamp(text)
        if timestamp_ms is not None:
            return timestamp_ms
        # In a URL, + means a space: `2026-11-16T01:00:00+01:00` arrives as `2026-11-16T01:00:00 01:00`.
        if parse_timestamp("+".join(text.rsplit(" ", 1))) is not None:
            raise ValidationError(f"{self.invalid_message}. In a URL, write + as %2B")
        raise self.make_error("invalid")


class RequestSchema(Schema):
    error_messages: dict[str, str] = {  # noqa: RUF012 - declared so by marshmallow
        "unknown": "is not a known parameter or member",
        "type": "must be an object",
    }
    may_be_missing = False
    """An endpoint accepts requests without the body."""
    max_bytes: int | None = None
    """The size limit of the body. None means the limit for events."""

    def schema_for(self, _parameters: Mapping[str, str]) -> "RequestSchema":
        """Returns the schema of a body that is sent with these query parameters."""
        return self

    def advise(self, _messages: Mapping[str, Any]) -> str:
        """Returns advice that follows the error messages."""
        return ""


class SmallBody(RequestSchema):
    """A body without events, whose limit is independent of the limit for events."""

    max_bytes = 262_144
