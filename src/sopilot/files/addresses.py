"""URLs that people write."""

from __future__ import annotations

from urllib.parse import urlsplit

from sopilot.messages.errors import mistake


def require_url(url: str) -> str:
    """Return the URL, or raise a mistake that names what is wrong with it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        host, why = None, str(problem)
    else:
        why = "it names no host" if not host else ""
    if not why and any(item.isspace() or not item.isprintable() for item in url):
        why = "there is a space in it"
    if why:
        raise mistake("bad-url", f"`{url}` isn't a URL: {why}", help="http://127.0.0.1:8000/v1")
    return url
