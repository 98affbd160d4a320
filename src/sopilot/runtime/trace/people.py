"""When two spellings are one person."""

from __future__ import annotations

import unicodedata


def folded_name(name: str) -> str:
    """Compatibility forms, capitals, spaces and invisible characters make no second person."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    seen = "".join(
        " " if char.isspace() else char for char in plain if unicodedata.category(char) != "Cf"
    )
    return unicodedata.normalize("NFKC", " ".join(seen.split()))
