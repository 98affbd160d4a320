"""Sign people in by a token of the store or of an OpenID Connect provider (extra ``openid``)."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sopilot.messages.diagnostic import Place
from sopilot.messages.errors import RunEnded, UserMistake, mistake
from sopilot.protocols import Clock, SystemClock
from sopilot.records.people import TOKEN_PREFIX, Principal, Provider, load_people
from sopilot.records.store import Store

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Signatures with a public key. With a shared secret, the verifier could sign as well."""

_SECONDS = 10.0
"""Time limit for each of a provider's two documents."""

_LONGEST_OPENID = 1 << 20
_LEEWAY_SECONDS = 30
_LOCAL = ("localhost", "127.0.0.1", "::1")


def subject_of(token: str, providers: dict[str, Provider]) -> tuple[str, str]:
    """Check signature, issuer, audience and time; return issuer and subject."""
    try:
        import jwt
    except ImportError:
        raise UserMistake(
            "tokens of OpenID Connect providers need an extra: pip install 'sopilot[openid]'"
        ) from None
    try:
        claimed = jwt.decode(token, options={"verify_signature": False}).get("iss")
        named = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise mistake(
            "no-token", "this is neither a token of this store nor of a provider"
        ) from None
    provider = providers.get(str(claimed))
    if provider is None:
        raise mistake("unknown-provider", f"this store doesn't trust tokens of `{claimed}`")
    try:
        claims = jwt.decode(
            token,
            _key_of(provider.issuer, named),
            algorithms=list(ALGORITHMS),
            audience=provider.audience,
            issuer=provider.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWTError as problem:
        raise mistake("bad-token", f"invalid token: {problem}") from None
    if not claims["sub"]:
        raise mistake("bad-token", "invalid token: its subject is empty")
    return provider.issuer, str(claims["sub"])


def _key_of(issuer: str, named: object) -> Any:
    """The signature key that the provider publishes under this name. Keys that the token itself
    names (`jku`, `x5u`, `jwk`) don't count."""
    import jwt

    about = issuer.rstrip("/") + "/.well-known/openid-configuration"
    description = _document(about)
    if description.get("issuer") != issuer:
        raise RunEnded(f"{about} describes another issuer")
    address = str(description.get("jwks_uri"))
    keys = _document(address).get("keys")
    for item in keys if isinstance(keys, list) else ():
        if isinstance(item, dict) and item.get("kid") == named and named and _signs(item):
            try:
                return jwt.PyJWK(item)
            except (jwt.PyJWTError, ValueError, TypeError, LookupError) as problem:
                raise RunEnded(
                    f"invalid key `{named}` in the JWKS at {address}: {problem}"
                ) from None
    raise mistake("bad-token", f"invalid token: {issuer} has no signing key `{named}`")


def _signs(key: dict[str, Any]) -> bool:
    return key.get("use", "sig") == "sig" and key.get("alg", ALGORITHMS[0]) in ALGORITHMS


def _document(address: str) -> dict[str, Any]:
    """Read a JSON document within bounds of time and size; follow no redirect."""
    import httpx2

    _require_safe(address)
    body = b""
    until = time.monotonic() + _SECONDS
    try:
        with httpx2.stream("GET", address, timeout=_SECONDS) as answer:
            answer.raise_for_status()
            for part in answer.iter_bytes():
                body += part
                if len(body) > _LONGEST_OPENID or time.monotonic() > until:
                    raise RunEnded(f"{address} is too long, or takes too long")
        document = json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError) as problem:
        raise RunEnded(f"{address} cannot be read: {problem}") from None
    if not isinstance(document, dict):
        raise RunEnded(f"{address} cannot be read: it isn't a JSON object")
    return document


def _require_safe(address: str) -> None:
    """Without a fragment: `ISSUER#SUBJECT` is one person's."""
    try:
        parts = urlsplit(address)
        local = parts.scheme == "http" and parts.hostname in _LOCAL
    except ValueError:
        parts, local = urlsplit(""), False
    if (parts.scheme == "https" or local) and not parts.fragment:
        return
    raise mistake(
        "unsafe-provider", f"`{address}` isn't https: the keys could be replaced in transit"
    )


TOKEN_VARIABLE = "SOPILOT_TOKEN"
_LONGEST = 1 << 16


async def sign_in(store: Store, token: str, *, clock: Clock | None = None) -> Principal:
    """Sign in with a token of this store, or with a signed token of a provider that it trusts."""
    people = await load_people(store)
    if token.startswith(TOKEN_PREFIX):
        return people.of_token(token, (clock or SystemClock()).now())
    issuer, subject = await asyncio.to_thread(subject_of, token, people.providers)
    return people.of_subject(issuer, subject)


async def who_asks(store: Store, token_file: Path | None, token: str = "") -> Principal | None:
    """Sign in with the token in the file, else this token, else the environment's; ``None`` without
    a token."""
    token = token or os.environ.get(TOKEN_VARIABLE, "")
    if token_file is not None:
        try:
            with open(token_file, encoding="utf-8") as file:
                token = file.read(_LONGEST)
        except (OSError, UnicodeDecodeError) as problem:
            raise mistake(
                "no-token", f"cannot be read: {problem}", Place(str(token_file))
            ) from None
    return await sign_in(store, token.strip()) if token.strip() else None
