"""How people and agents come in: the command line, MCP, hooks for agent frameworks. Options,
printing and wiring; nothing else imports a door.
"""
