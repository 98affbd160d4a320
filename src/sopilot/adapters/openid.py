"""Signed tokens of OpenID Connect providers (extra ``openid``), by the keys they publish."""

from __future__ import annotations

from urllib.parse import urlsplit

from sopilot.language.diagnostics import RunEnded, UserMistake, mistake
from sopilot.runtime.records.people import Provider

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Signatures with a public key: with a shared secret whoever checks could sign as well."""

_SECONDS = 10.0
_LEEWAY_SECONDS = 30
_LOCAL = ("localhost", "127.0.0.1", "::1")


def subject_of(token: str, providers: dict[str, Provider]) -> tuple[str, str]:
    """Issuer and subject, once signature, issuer, audience and time were found right."""
    try:
        import jwt
    except ImportError:
        raise UserMistake(
            "tokens of OpenID Connect providers need an extra: pip install 'sopilot[openid]'"
        ) from None
    try:
        claimed = jwt.decode(token, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise mistake("no-token", "this is no token of ours, and none of a provider") from None
    provider = providers.get(str(claimed))
    if provider is None:
        raise mistake("unknown-provider", f"tokens of `{claimed}` are not believed here")
    keys = jwt.PyJWKClient(_keys_address(provider.issuer), timeout=_SECONDS)
    try:
        key = keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(
            token,
            key,
            algorithms=list(ALGORITHMS),
            audience=provider.audience,
            issuer=provider.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
    except jwt.PyJWKClientConnectionError as problem:
        raise RunEnded(f"the keys of {provider.issuer} cannot be had: {problem}") from None
    except jwt.PyJWTError as problem:
        raise mistake("bad-token", f"the token is not good: {problem}") from None
    return provider.issuer, str(claims["sub"])


def _keys_address(issuer: str) -> str:
    """As the provider's own description says."""
    import httpx2

    _require_safe(issuer)
    address = issuer.rstrip("/") + "/.well-known/openid-configuration"
    try:
        answer = httpx2.get(address, timeout=_SECONDS)
        answer.raise_for_status()
        found = answer.json()
    except (httpx2.HTTPError, ValueError) as problem:
        raise RunEnded(f"{address} cannot be read: {problem}") from None
    if not isinstance(found, dict) or found.get("issuer") != issuer:
        raise RunEnded(f"{address} describes another issuer")
    keys = str(found.get("jwks_uri"))
    _require_safe(keys)
    return keys


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL):
        return
    raise mistake(
        "unsafe-provider", f"`{address}` is not https: keys could be exchanged on the way"
    )
