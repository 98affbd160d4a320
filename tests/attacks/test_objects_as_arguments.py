"""Objects that are one in JSON, and are not the same to the tool. The judge is what was paid."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any
from uuid import UUID

import pytest

pytest.importorskip("langchain", reason="needs the extra `frameworks`")

from every_interface import reply_of
from framework_agents import EVERY_FRAMEWORK, FrameworkAgent
from pydantic import BaseModel, BeforeValidator, ConfigDict, HttpUrl, RootModel, SecretStr
from scripted_moves import Script, call

import sopilot
from sopilot.runner.conversations import Conversations

HANDBOOK = """
handbook: payouts
actions:
  read_customer: {input: {customer: TYPE}, read_only: true}
  pay: {input: {customer: TYPE, amount: number}, irreversible: true, confirm: false}
predicates:
  blocked(customer): {says: Blocked., verify: read_customer(customer), verdict: VERDICT}
procedures:
  pay: {requires: [not: blocked(customer)]}
"""


def book(folder: Path, kind: str, verdict: str = "result.blocked") -> Path:
    path = folder / "payouts.yaml"
    path.write_text(HANDBOOK.replace("TYPE", kind).replace("VERDICT", verdict), "utf-8")
    return path


class Customer:
    """A record of a database."""

    def __init__(self, id: int, name: str = "Ann Lee") -> None:
        self.id = id
        self.name = name

    def __str__(self) -> str:
        return self.name


class Text(str):
    id: int


class Number(int):
    id: int


def made(kind: Any, value: Any, number: int) -> Any:
    own = kind(value)
    own.id = number
    return own


@dataclasses.dataclass
class Person:
    number: str


@dataclasses.dataclass
class Company:
    number: str


class Human(BaseModel):
    number: str


class Firm(BaseModel):
    model_config = ConfigDict(extra="allow")
    number: str


class Low(RootModel[str]): ...


class High(RootModel[str]): ...


Pair = namedtuple("Pair", "number")  # without types
Other = namedtuple("Other", "number")


class Level(int, enum.Enum):
    shown: int

    def __new__(cls, number: int, shown: int) -> Level:
        level = int.__new__(cls, number)
        level._value_ = shown
        return level

    HIGH = 500, 5


NAMED: dict[str, Any] = {"number": "7", "$class": f"{__name__}.Human"}
ODD: dict[str, tuple[str, Any, Any]] = {
    "record": ("string", Customer(1), Customer(2)),
    "records": ("array", [Customer(1)], [Customer(2)]),
    "key": ("object", {Customer(1): 1}, {Customer(2): 1}),
    "text": ("string", made(Text, "a", 1), made(Text, "a", 2)),
    "number": ("integer", made(Number, 3, 1), made(Number, 3, 2)),
    "dataclass": ("object", Person("7"), Company("7")),
    "dataclass, inside": ("object", {"of": [Person("7")]}, {"of": [Company("7")]}),
    "dictionary": ("object", {**NAMED, "$class": f"{__name__}.Company"}, Company("7")),
    "model": ("object", Human(number="7"), Firm(number="7")),
    "model, named": ("object", Human(number="7"), Firm(**NAMED)),
    "root": ("string", Low("7"), High("7")),
    "tuple": ("array", Pair("7"), Other("7")),
    "enumeration of a number": ("integer", 5, Level.HIGH),
    "enumeration as a key": ("object", {5: 1}, {Level.HIGH: 1}),
    "defaults": ("object", defaultdict(bool, id="1"), defaultdict(lambda: True, id="1")),
    "defaults of one": ("object", {"id": "1"}, defaultdict(lambda: True, id="1")),
    "mapping": ("object", UserDict(id="1"), UserDict(id="1")),
}  # fmt: skip


@pytest.mark.parametrize("verify", ["ask", "auto"])
@pytest.mark.parametrize("name", list(ODD))
def test_the_evidence_for_an_object_is_for_no_other(tmp_path: Path, name: str, verify: Any) -> None:
    kind, first, second = ODD[name]
    paid: list[Any] = []

    def read_customer(customer: Any) -> dict[str, bool]:
        return {"blocked": customer is not first}

    def pay(customer: Any, amount: float) -> None:
        paid.append(customer)

    functions = read_customer, pay
    read, act = sopilot.guard(book(tmp_path, kind), *functions, verify=verify, refusals="text")
    with sopilot.conversation("c-1"):
        read(first)
        act(second, 5)
    assert paid == []


HONEST: dict[str, tuple[str, Callable[[], Any]]] = {
    "uuid": ("string", lambda: UUID(int=7)),
    "path": ("string", lambda: Path("a/b")),
    "date": ("string", lambda: date(2026, 1, 2)),
    "time": ("string", lambda: time(3, 4)),
    "datetime": ("string", lambda: datetime(2026, 1, 2, tzinfo=UTC)),
    "timedelta": ("string", lambda: timedelta(hours=2)),
    "decimal": ("number", lambda: Decimal("19.99")),
    "fraction": ("string", lambda: Fraction(1, 3)),
    "address": ("string", lambda: ip_address("10.0.0.1")),
    "url": ("string", lambda: HttpUrl("http://a.b/c")),
    "secret": ("string", lambda: SecretStr("sesame")),
    "dataclass": ("object", lambda: Person("7")),
    "model": ("object", lambda: Firm(number="7", other=[Human(number="8")])),
    "ordered": ("object", lambda: OrderedDict(id="1")),
    "proxy": ("object", lambda: MappingProxyType({"id": "1"})),
    "set": ("array", lambda: {1, 2}),
    "enumeration": ("string", lambda: enum.StrEnum("Color", {"RED": "red"}).RED),
    "plain enumeration": ("string", lambda: enum.Enum("Color", {"RED": "red"}).RED),
    "bytes": ("object", lambda: b"abc"),
}


@pytest.mark.parametrize("name", list(HONEST))
def test_an_object_that_is_all_in_its_json_is_evidence_for_an_equal_one(
    tmp_path: Path, name: str
) -> None:
    kind, make = HONEST[name]
    paid: list[Any] = []

    def read_customer(customer: Any) -> dict[str, bool]:
        return {"blocked": False}

    def pay(customer: Any, amount: float) -> None:
        paid.append(customer)

    read, act = sopilot.guard(book(tmp_path, kind), read_customer, pay)
    with sopilot.conversation("c-1"):
        read(make())
        act(make(), 5)
    assert len(paid) == 1


def test_objects_are_not_taken_for_others_because_one_names_its_class(tmp_path: Path) -> None:
    """Without the class, the answer says that this very person is blocked."""
    paid: list[Person] = []

    def read_customer(customer: Person) -> dict[str, Any]:
        return {"blocked": dataclasses.asdict(customer)}

    def pay(customer: Person, amount: float) -> None:
        paid.append(customer)

    handbook = book(tmp_path, "object", "result.blocked == customer")
    read, act = sopilot.guard(handbook, read_customer, pay, refusals="text")
    with sopilot.conversation("c-1"):
        read(Person("7"))
        act(Person("7"), 5)
    assert paid == []


RECORDS: Mapping[str, Customer] = {"1": Customer(1), "2": Customer(2)}
Found = Annotated[Any, BeforeValidator(lambda given: RECORDS.get(given, given))]


@EVERY_FRAMEWORK
async def test_a_validator_that_makes_an_object_of_a_text(
    tmp_path: Path, framework: type[FrameworkAgent]
) -> None:
    paid: list[Any] = []

    def read_customer(customer: Found) -> dict[str, bool]:
        """Look up."""
        return {"blocked": customer is not RECORDS["1"]}

    def pay(customer: Found, amount: float) -> str:
        """Pay."""
        paid.append(customer)
        return "paid"

    script = Script([call("read_customer", customer="1"), call("pay", customer="2", amount=5)])
    conversations = Conversations.of(book(tmp_path, "string"))
    tools = [framework.tool(read_customer, "read_customer"), framework.tool(pay, "pay")]
    await framework(conversations, tools, reply_of(script)).say("Pay.", "c-1")
    assert paid == []
