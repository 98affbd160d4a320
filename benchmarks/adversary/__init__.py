"""The adversary: tries to get a guarded action carried out whose requirement the world denies.

Random handbooks (`handbooks`, out of the predicates in `catalogue`) with truthful simulated
worlds (`world`, `tools`), an executor that plays by the book (`conforming`) and one that does
not (`moves`), at the pure core (`core_play`) and through a session (`session_play`), exhaustively
on small handbooks (`exhaustive`). Whether a call that was carried out was right is judged by the
world's own truth (`judging`): never by machine, guard or audit. What admits a call is asked for
in one place (`admission`), and broken on purpose in one place (`sabotage`).
"""
