"""How a program at a terminal speaks and ends.

Owns what goes out (text that hides nothing, marks, progress, JSON for scripts), a run as it is
watched, the store that a program works on, streams that are closed or lost, and commands that
load on use. May import every wing below; the commands import this room.
"""
