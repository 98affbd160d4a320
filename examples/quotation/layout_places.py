"""Rows and columns of the workbook, shared by its formulas and its checks."""

from __future__ import annotations

from dataclasses import dataclass

from .quotation import Quotation

COSTING_ROW = 5
"""The first line on the sheets Lines and Prices."""


@dataclass(frozen=True, slots=True)
class Places:
    lines: int
    options: int
    currencies: tuple[str, ...]
    page_header: int = 14

    @classmethod
    def of(cls, quotation: Quotation) -> Places:
        used = {line.offer.listed.currency for line in quotation.lines}
        used |= {quotation.customer.currency, "EUR"}
        return cls(len(quotation.lines), len(quotation.options), tuple(sorted(used)))

    @property
    def page_first(self) -> int:
        return self.page_header + 1

    @property
    def page_last(self) -> int:
        return self.page_header + self.lines

    @property
    def goods(self) -> int:
        return self.page_last + 2

    @property
    def freight(self) -> int:
        return self.goods + 1

    @property
    def tax(self) -> int:
        return self.goods + 2

    @property
    def total(self) -> int:
        return self.goods + 3

    @property
    def terms(self) -> int:
        return self.total + 3

    def column(self, letter: str) -> str:
        """The range of all lines in this column of the sheets Lines and Prices."""
        return f"{letter}{COSTING_ROW}:{letter}{COSTING_ROW + self.lines - 1}"

    def option_rows(self) -> range:
        return range(7, 7 + self.options)

    def rate_row(self, currency: str) -> int:
        return 5 + self.currencies.index(currency)
