"""A till: a handbook in a file, and runs in which it pays somebody."""

from __future__ import annotations

from pathlib import Path

from commands import shown

BOOK = """handbook: till
actions:
  look: {input: {who: string}, read_only: true}
  pay: {input: {who: string, amount: integer, note: string}, ACT}
predicates:
  known(who): {says: "{who} is known.", verify: look(who), verdict: result.known}
procedures:
  pay: {requires: known(who)}
"""
APPROVED = "approval: {roles: [supervisor], needed: 1, expires: 1h}"


class Till:
    def __init__(self, folder: Path, act: str = "irreversible: true, confirm: false") -> None:
        self.book, self.results = folder / "till.yaml", folder / "results.yaml"
        self.text = BOOK.replace("ACT", act)
        self.book.write_text(self.text)

    def run(
        self, who: str = "ann", amount: int = 5, book: Path | None = None
    ) -> tuple[object, ...]:
        """The command of a run."""
        self.results.write_text(f"look: {{known: true, name: {who}}}\npay: {{paid_to: {who}}}\n")
        return (
            "run", book or self.book, "--goal", "pay", "--results", self.results,
            "--request", f"Hello, this is {who}, pay me.", "--input", f"who={who}",
            "--input", f"amount={amount}", "--input", f"note=for {who}",
        )  # fmt: skip

    def pay(self, who: str, amount: int) -> str:
        """Return the session, which alone keeps what was said."""
        session = str(shown(*self.run(who, amount))["session"])
        self.results.unlink()
        return session
