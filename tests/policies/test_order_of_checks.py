"""What is computed is computed before it is looked at."""

from __future__ import annotations

import pytest

from sopilot.compiler.pipeline import compile_handbook
from sopilot.handbook.consistency import obligations
from sopilot.handbook.reader import load_handbook
from sopilot.handbook.requirements import leaves
from sopilot.program.printer import print_program

COMPUTED = """
handbook: claims
actions:
  read_claim: {input: {claim: string}}
  pay: {input: {claim: string, amount: number, fee: number}, irreversible: true, confirm: Paid.}
predicates:
  known(claim): {says: 'Claim {claim} is known.', verify: read_claim(claim), verdict: result.known}
  small(amount): {says: 'The amount {amount} is small.', verify: arguments, verdict: amount < 100}
  open(claim): {says: 'Claim {claim} is open.', verify: read_claim(claim), verdict: result.open}
procedures:
  pay:
    arguments:
      fee: {verify: read_claim(claim), value: result.amount / 10}
      amount: {verify: read_claim(claim), value: result.amount - 5}
    requires: REQUIRES
"""
AMOUNT, FEE, SAID = "pay_amount_is_computed", "pay_fee_is_computed", "pay_is_confirmed"


@pytest.mark.parametrize(
    ("requires", "order"),
    [
        ("[known(claim)]", ["known", FEE, AMOUNT, SAID]),
        ("{in_order: [known(claim), small(amount), open(claim)]}",
         ["known", AMOUNT, "small", "open", FEE, SAID]),
        ("[small(amount), known(claim)]", ["known", AMOUNT, "small", FEE, SAID]),
        ("{in_order: [known(claim), {any: [open(claim), small(amount)]}]}",
         ["known", AMOUNT, "open", "small", FEE, SAID]),
        ("{in_order: [known(claim), {when: open(claim), then: small(fee)}]}",
         ["known", FEE, "open", "small", AMOUNT, SAID]),
        ("[small(amount), small(amount), open(claim), known(claim)]",
         ["open", "known", AMOUNT, "small", "small", FEE, SAID]),
        ("{in_order: [known(claim), {requires: small(amount), otherwise: Too much.}]}",
         ["known", AMOUNT, "small", FEE, SAID]),
        ("small(amount)", [AMOUNT, "small", FEE, SAID]),
    ],
)  # fmt: skip
def test_a_value_is_computed_before_what_reads_it(requires: str, order: list[str]) -> None:
    handbook = load_handbook(COMPUTED.replace("REQUIRES", requires))
    tree = obligations(handbook, handbook.procedures["pay"])
    assert [leaf.predicate for leaf in leaves(tree)] == order
    assert print_program(compile_handbook(handbook)["pay"].program)
