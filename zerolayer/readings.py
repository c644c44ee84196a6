"""What a rule was understood to say: the norms of a rules.md as data.

The keys are those of `ska-build check --json`. A reading holds values in their JSON form, so that
a pack stores it as it is; `zerolayer.values` turns them into typed values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

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
    def from_json(cls, data: dict[str, Any]) -> Slot:
        return cls(
            name=data["name"],
            type=data["type"],
            also=tuple(data.get("also", ())),
            choices=tuple(data.get("choices", ())),
        )

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
    def from_json(cls, data: dict[str, Any]) -> Reading:
        own = {f.name for f in fields(cls)}
        return cls(
            rule=data["rule"],
            line=data["line"],
            kind=data["kind"],
            language=data["language"],
            slot=Slot.from_json(data["slot"]) if "slot" in data else None,
            action=data.get("action"),
            details={k: v for k, v in data.items() if k not in own},
        )


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
