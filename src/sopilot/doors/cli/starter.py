"""The starter that ``sopilot new`` writes: a handbook and its scenarios, with comments."""

from __future__ import annotations

HANDBOOK = """\
# A handbook tells what must hold before something is done. Change this one bit by bit;
# `sopilot check {name}.yaml` names every mistake with its line.
handbook: {name}
says: You serve people who return things they bought.

# Constants. Use them by name in arguments, sentences and verdicts.
parameters:
  largest_refund: 200

# Actions are the tools that the agent may call.
actions:
  login:
    says: Logs a customer in.
    input: {{customer: string, password: string}}
  find_order:
    says: Reads an order with its state and its age in days.
    input: {{customer: string, order: string}}
    requires: logged_in(customer)  # nobody reads orders before the customer has logged in
  read_policy:
    says: Reads for how many days things can be returned.
  refund:
    says: Pays an order back.
    input: {{customer: string, order: string, amount: number, reason: string}}
    irreversible: true  # held back until every requirement is proven

# Predicates are what can hold or not. Each says how it is verified.
predicates:
  logged_in(customer):
    says: The customer {{customer}} has logged in.
    established_by: login(customer, password)  # a gate: the action makes it true
    remedy: Log in with the right password.
  delivered(customer, order):
    says: The order {{order}} was delivered.
    says_not: The order {{order}} was not delivered.
    verify: find_order(customer, order)
    verdict: result.state == 'delivered'  # a machine can judge it (CEL)
    remedy: Wait until the order has arrived.
  in_time(customer, order):
    says: The order {{order}} can still be returned.
    verify: {{all: [read_policy(), find_order(customer, order)]}}
    verdict: results.find_order.days <= results.read_policy.days
    remedy: Ask for a repair instead.
  small(amount):
    says: The amount {{amount}} is at most {{largest_refund}}.
    verify: arguments  # needs no tool
    verdict: amount <= largest_refund
    remedy: Larger amounts are decided by the shop's manager.
  damaged(reason):
    says: The reason "{{reason}}" tells of something broken.
    verify: arguments
    # Without a verdict whoever runs the procedure has to read and judge.
    verdict: reason.contains('broken')

# Procedures: what must hold before the action of the same name is carried out.
# Trees are made of `all`, `any`, `in_order`, `first` and `not`.
procedures:
  refund:
    says: Pays an order back to the customer.
    requires:
      in_order:
        - logged_in(customer)
        - delivered(customer, order)
        - small(amount)
        - any:
            - in_time(customer, order)
            - damaged(reason)
"""

SCENARIOS = """\
# Scenarios for {name}.yaml. Run them with `sopilot test {name}.yaml`.
handbook: {name}

# What the tools answer, unless a scenario says otherwise. A tool that is not mentioned
# succeeds and tells nothing. A predicate without a verdict is judged by the scenario:
# `verdicts: {{damaged: true}}`.
tools:
  login: ok
  read_policy: {{days: 30}}
  find_order: {{state: delivered, days: 3}}

scenarios:
  a fresh order is paid back:
    goal: refund
    knows: {{customer: Ada, password: pw, order: o-1, amount: 80, reason: I do not like it.}}
    expect: executed
    calls: [login, find_order, refund]  # in this order; others may come in between

  a broken thing is paid back however old it is:
    goal: refund
    knows: {{customer: Ada, password: pw, order: o-2, amount: 80, reason: The lamp is broken.}}
    tools:
      find_order: {{state: delivered, days: 300}}
    expect: executed

  an old order is not paid back for nothing:
    goal: refund
    knows: {{customer: Ada, password: pw, order: o-2, amount: 80, reason: I do not like it.}}
    tools:
      find_order: {{state: delivered, days: 300}}
    expect: {{refused: in_time}}
    no_calls: [refund]

  a wrong password opens nothing:
    goal: refund
    knows: {{customer: Ada, password: wrong, order: o-1, amount: 80, reason: I do not like it.}}
    tools:
      login:
        - when: {{password: wrong}}
          failed: {{error: wrong password}}
        - ok
    expect: {{refused: logged_in}}
    no_calls: [find_order, refund]

  an order that is on its way is not paid back:
    goal: refund
    knows: {{customer: Ada, password: pw, order: o-3, amount: 80, reason: I do not like it.}}
    tools:
      find_order: {{state: shipped, days: 0}}
    expect: {{refused: delivered}}
"""
