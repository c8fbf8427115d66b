"""The models of ADK's contract, and others that tests of decoding share."""

from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field


class Kind(Enum):
    ROAD = "road"
    LANE = "lane"


class Address(BaseModel):
    street: str
    zip: str = "0000"


class Decision(BaseModel):
    """The model of ADK's contract, D01 to D11, and a nested one."""

    approved: bool
    note: str = "dflt"
    level: int = Field(default=1, ge=1, le=5)
    limit: int | None = 7
    addr: Address | None = None
    kind: Kind = Kind.ROAD
    tags: list[Literal["p", "q"]] = []


class Cat(BaseModel):
    pet: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    pet: Literal["dog"]
    good: bool = True


class Tree(BaseModel):
    name: str = "leaf"
    children: "list[Tree]" = []
