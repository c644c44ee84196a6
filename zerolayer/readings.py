"""What a rule was understood to say: the norms of a rules.md as data.

The keys are those of `ska-build check --json`. A reading holds values in their JSON form, so that
a pack stores it as it is; `zerolayer.values` turns them into typed values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from zerolayer.errors import ZerolayerError

Kind = Literal["definition", "consistency", "bound", "prohibition", "requirement", "precedence"]
Action = Literal["observe", "steer", "enforce", "repair", "stop"]
Language = Literal["en", "zh"]


@dataclass(frozen=True)
class Slot:
    """A typed value that decisions are about: its name, its other names, its type."""

    name: str
    type: str
    also: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> Slot:
        """Raises ZerolayerError: a key is missing or of the wrong type."""
        return _checked(_SLOT, data, "a slot")

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"name": self.name, "type": self.type, "also": list(self.also)}
        if self.choices:
            data["choices"] = list(self.choices)
        return data


@dataclass(frozen=True)
class Reading:
    """One norm of one rule.

    `details` holds the further keys of the kind (`operator`, `value`, `order`, `tie`, `act`, ...)
    exactly as they are printed; a key with nothing to say is absent.
    """

    rule: str
    line: int
    kind: Kind
    language: Language
    slot: Slot | None = None
    action: Action | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "rule": self.rule,
            "line": self.line,
            "kind": self.kind,
            "language": self.language,
        }
        if self.slot is not None:
            data["slot"] = self.slot.to_json()
        data.update(self.details)
        if self.action is not None:
            data["action"] = self.action
        return data

    @classmethod
    def from_json(cls, data: Any) -> Reading:
        """Raises ZerolayerError: a key is missing or of the wrong type."""
        if not isinstance(data, dict):
            raise ZerolayerError(f"a reading must be an object, not {type(data).__name__}")
        own = {f.name for f in fields(cls)} - {"details"}
        known = {k: v for k, v in data.items() if k in own}
        details = {k: v for k, v in data.items() if k not in own}
        return _checked(_READING, {**known, "details": details}, "a reading")


_SLOT = TypeAdapter(Slot)
_READING = TypeAdapter(Reading)
T = TypeVar("T")


def _checked(adapter: TypeAdapter[T], data: Any, what: str) -> T:
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "it"
        raise ZerolayerError(f"{what} is malformed: {place}: {first['msg']}") from error


class HasRules(Protocol):
    """What decisions need: a pack has it, and so do checked rules without a model."""

    @property
    def readings(self) -> Sequence[Reading]: ...

    @property
    def slots(self) -> Sequence[Slot]: ...


@dataclass(frozen=True)
class RuleSet:
    """Readings and the slots that they decide."""

    readings: Sequence[Reading]
    slots: Sequence[Slot]
