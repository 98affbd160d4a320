def exit_conversation() -> None:
    """Ends the conversation."""
