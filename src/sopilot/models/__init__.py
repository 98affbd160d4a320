"""Language models by name: hosted, local, mailbox, replay, a person."""
