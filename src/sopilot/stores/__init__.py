"""Where sessions are stored: memory, SQLite, PostgreSQL, encryption, backups."""
