"""A shed that lends tools, its gate keeper, and a strict shed that refuses what is not due."""

from __future__ import annotations

import copy
from typing import Any

Database = dict[str, Any]


class Shed:
    def __init__(
        self,
        data: Database | None = None,
        innate: dict[str, Any] | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.data = data or {"members": {}, "tools": {}}
        self.most_owed = (parameters or {}).get("most_owed", 5)
        self.innate_state_tracker = Keeper(self, **(parameters or {}))

    def evaluation_get_database(self) -> Database:
        return self.data

    # --- actions ---------------------------------------------------------------------

    def login_user(self, username: str, identification: str) -> bool:
        return self.data["members"][username]["word"] == identification

    def find_tool(self, tool: str) -> tuple[bool, Any]:
        if tool not in self.data["tools"]:
            return False, None
        return True, {"tool": tool, "lent_to": self.data["tools"][tool]}

    def read_fees(self, username: str) -> tuple[bool, Any]:
        return True, {"owed": self.data["members"][username]["owed"]}

    def internal_get_database(self) -> tuple[bool, Any]:
        return True, self.data

    def lend_tool(self, username: str, tool: str) -> bool:
        if self.data["tools"][tool] is not None:
            return False
        self.data["tools"][tool] = username
        return True

    def take_back(self, username: str, tool: str) -> bool:
        """Forgets to write down what it takes back."""
        if self.data["tools"][tool] != username:
            return False
        shelf = dict(self.data["tools"])
        shelf[tool] = None
        return True

    # --- predicates ------------------------------------------------------------------

    def tool_is_here(self, tool: str) -> bool:
        return self.data["tools"][tool] is None

    def fees_are_low(self, username: str) -> bool:
        return bool(self.data["members"][username]["owed"] <= self.most_owed)


class Keeper:
    """Who has logged in."""

    def __init__(self, domain_system: Shed, **parameters: Any) -> None:
        self.domain_system = domain_system
        self.inside: set[str] = set()

    def set_login_user(self, username: str) -> None:
        self.inside.add(username)

    def logged_in_user(self, username: str) -> bool:
        return username in self.inside


class StrictShed:
    def __init__(self, data: Database | None = None) -> None:
        self.domain_system = Shed(copy.deepcopy(data))
        self.state_tracker = Keeper(self.domain_system)

    def evaluation_get_dependency_parameters(self) -> dict[str, Any]:
        return {"most_owed": 5}
