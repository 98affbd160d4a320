"""What happens: the machine, its trace, sessions that last, agents that move them and the audit
that judges them. Time, chance and files come in through protocols.
"""
