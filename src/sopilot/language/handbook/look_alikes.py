"""Texts that nobody can tell apart by looking: two spellings of `é`, a space at the end, a sign
without width. A tool may take them for one, so they are neither the same nor different."""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset(
    map(
        chr,
        (
            0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2065, 0x2800, 0x3164,
            *range(0xFE00, 0xFE10), 0xFFA0, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000),
        ),
    )
)  # fmt: skip
"""Marks, letters and unassigned signs that Unicode has screens leave out, and the empty braille
cell; those of the categories below are told by their category."""
_UNSEEN_CATEGORIES = ("Cf", "Cc")


def without_unseen(text: str) -> str:
    """Without signs that leave no trace on a screen; spaces stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign
        for sign in text
        if sign not in _UNSEEN
        and (sign.isspace() or unicodedata.category(sign) not in _UNSEEN_CATEGORIES)
    )


def as_seen(text: str) -> str:
    """Equal for texts that look the same; letters keep their case."""
    if text.isascii() and text.isprintable():
        return text.strip()
    return without_unseen(unicodedata.normalize("NFKC", text)).strip()


def look_the_same(left: object, right: object) -> bool:
    return isinstance(left, str) and isinstance(right, str) and as_seen(left) == as_seen(right)


def same_name(name: str) -> str:
    """A person's name, such that two spellings of it are equal: of whatever case, width and
    spacing, with other digits, with or without signs that nobody sees. Letters of another
    alphabet are other letters, however they look."""
    if name.isascii() and name.isprintable():
        return " ".join(name.casefold().split())
    folded = unicodedata.normalize("NFKC", name).casefold()
    # Capitals may come apart in folding, and `İ` leaves its dot behind.
    folded = unicodedata.normalize("NFKC", folded).replace("i\u0307", "i").replace("ı", "i")
    digits = (str(unicodedata.decimal(sign, sign)) for sign in without_unseen(folded))
    return " ".join("".join(digits).split())
