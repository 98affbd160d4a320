"""The adversary: tries to get a guarded action carried out whose requirement is not met.

Random handbooks (`random_handbooks`, out of the predicates in `facts`) run against a truthful
simulator (`simulator`, `tools`). One executor plays by the book (`conforming`), one leaves it
(`moves`), at the pure core (`core_play`), through a session (`session_play`), and exhaustively on
small handbooks (`exhaustive`). The simulator's own records judge every call that was carried out:
never the machine, the guard or the audit. `sabotage` breaks the guard on purpose, one clause at a
time; the campaign must notice each.
"""
