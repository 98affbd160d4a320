"""A public key as people give it: its digits, or the file that has them."""

from __future__ import annotations

from pathlib import Path

from sopilot.language.diagnostics import Place, mistake

PUBLIC_KEY_BYTES = 32


def public_key(given: str) -> str:
    path = Path(given)
    text = path.read_text("ascii", errors="replace").strip() if path.is_file() else given
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != PUBLIC_KEY_BYTES:
        raise mistake(
            "no-key",
            f"`{given}` is not a public key",
            Place("--key"),
            f"{2 * PUBLIC_KEY_BYTES} hexadecimal digits, as `sopilot trace keygen` prints "
            "them, or the file FILE.pub that it writes",
        )
    return raw.hex()
