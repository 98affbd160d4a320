"""People who prove who they are by a provider's signed token; tokens that somebody else made, and
providers that answer with something else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from commands import ran, refused, shown
from counter_sessions import waiting_wire
from sopilot.messages.errors import RunEnded, UserMistake
from sopilot.protocols import SystemClock
from sopilot.records.people import Provider
from sopilot.runner import sign_in as openid
from sopilot.runner.sign_in import subject_of
from sopilot.stores.open import open_store

KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("own", "other")}
PEM = (
    KEYS["own"]
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)
Served = dict[str, bytes]


def published(name: str = "own", **other: Any) -> dict[str, Any]:
    public = RSAAlgorithm.to_jwk(KEYS[name].public_key(), as_dict=True)
    return {**public, "kid": "own", "use": "sig", "alg": "RS256", **other}


class Desk:
    """A provider by its two documents, as bytes."""

    def __init__(self, issuer: str, served: Served) -> None:
        self.issuer, self.served = issuer, served
        self.describe(issuer=issuer, jwks_uri=f"{issuer}/keys")
        self.publish(published())

    def describe(self, **fields: object) -> None:
        self.served["/.well-known/openid-configuration"] = json.dumps(fields).encode()

    def publish(self, *keys: object) -> None:
        self.served["/keys"] = json.dumps({"keys": keys}).encode()

    def claims(self, **other: Any) -> dict[str, Any]:
        now = int(time.time())
        own = {"iss": self.issuer, "sub": "u", "aud": "sopilot", "iat": now, "exp": now + 600}
        return {**own, **other}

    def token(self, key: str = "own", header: Mapping[str, Any] | None = None, **other: Any) -> str:
        headers = {"kid": "own", **(header or {})}
        return jwt.encode(self.claims(**other), KEYS[key], algorithm="RS256", headers=headers)

    def ask(self, token: str) -> tuple[str, str]:
        return subject_of(token, {self.issuer: Provider(self.issuer, "sopilot")})


@pytest.fixture
def desk() -> Iterator[Desk]:
    served: Served = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = served[self.path]
            self.send_response(200)
            self.end_headers()
            try:
                if body == b"slow":
                    for _ in range(100):
                        self.wfile.write(b" ")
                        time.sleep(0.1)
                self.wfile.write(body)
            except OSError:
                pass  # who asked has heard enough

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield Desk(f"http://127.0.0.1:{server.server_address[1]}", served)
        server.shutdown()
        serving.join()


def spelled(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_secret(claims: object, secret: bytes) -> str:
    """Signed as whoever has only what is published could."""
    message = f"{spelled({'alg': 'HS256', 'kid': 'own'})}.{spelled(claims)}"
    return f"{message}.{spelled(hmac.new(secret, message.encode(), hashlib.sha256).digest())}"


async def session_that_waits(spec: str) -> str:
    store = open_store(spec)
    session = await waiting_wire(store, clock=SystemClock())
    await session.release()
    await store.close()
    return session.id


def test_a_providers_token_is_believed_by_its_keys_alone(
    desk: Desk, own_store: str, tmp_path: Path
) -> None:
    session, now = asyncio.run(session_that_waits(own_store)), int(time.time())

    def approve(key: str = "own", **claims: Any) -> tuple[object, ...]:
        (tmp_path / "token").write_text(desk.token(key, **{"sub": "u-17", **claims}))
        token = ("--token-file", tmp_path / "token")
        return (*token, "approvals", "approve", session, "w", "--role", "supervisor")

    assert refused(*approve()) == "unknown-provider"
    ran("people", "provider", desk.issuer, "--audience", "sopilot")
    assert refused(*approve()) == "unknown-subject"
    ran("people", "add", "Sue", "--role", "supervisor", "--openid", f"{desk.issuer}#u-17")
    assert refused(*approve("other")) == "bad-token"
    assert refused(*approve(aud="another")) == "bad-token"
    assert refused(*approve(exp=now - 3600)) == "bad-token"
    assert refused(*approve(iss="https://elsewhere.example")) == "unknown-provider"
    held = shown(*approve())
    assert [(one["by"], one["identity"]) for one in held["rulings"]] == [("Sue", "openid")]
    secret = ran("people", "token", "Sue", "--name", "sue-laptop").strip()
    assert secret.encode() not in (tmp_path / "store.db").read_bytes()
    (sue,) = shown("people", "list")["people"]
    assert [one["name"] for one in sue["tokens"]] == ["sue-laptop"]


def test_tokens_that_are_none(desk: Desk) -> None:
    assert desk.ask(desk.token()) == (desk.issuer, "u")
    claims, now = desk.claims(), int(time.time())
    for token in (
        f"{spelled({'alg': 'none', 'kid': 'own'})}.{spelled(claims)}.",
        f"{spelled({'kid': 'own'})}.{spelled(claims)}.",
        by_secret(claims, PEM),
        by_secret(claims, b""),
        desk.token("other"),
        desk.token("other", {"jku": f"{desk.issuer}/keys"}),
        desk.token("other", {"x5u": "file:///etc/passwd"}),
        desk.token("other", {"jwk": published("other")}),
        desk.token(header={"kid": "../../etc/passwd"}),
        jwt.encode(claims, KEYS["own"], algorithm="RS256"),
        jwt.encode(claims, KEYS["own"], algorithm="PS256", headers={"kid": "own"}),
        desk.token(header={"crit": ["odd"], "odd": 1}),
        desk.token(aud="another"),
        desk.token(aud=[]),
        desk.token(iss=f"{desk.issuer}/"),
        desk.token(exp=now - 60),
        desk.token(nbf=now + 60),
        desk.token(iat=now + 60),
        desk.token(sub=""),
        f"{spelled(b'[' * 100_000)}.{spelled(claims)}.",
        f"{spelled({'alg': 'RS256'})}.{spelled(b'[' * 100_000)}.",
        f"{desk.token()} {desk.token()}",
        desk.token() + "\0",
        "\ud800.a.b",
        "a" * 1_000_000,
    ):
        with pytest.raises(UserMistake):
            desk.ask(token)


def test_keys_that_sign_nothing(desk: Desk) -> None:
    token = desk.token()
    for key in (
        published(use="enc"),
        published(alg="none"),
        published(kid="another"),
        {"kty": "oct", "k": spelled(b"s" * 40), "kid": "own", "alg": "HS256"},
        "own",
    ):
        desk.publish(key)
        with pytest.raises(UserMistake, match="has no signing key `own`"):
            desk.ask(token)
    desk.publish({"kty": "oct", "k": spelled(b"s" * 40), "kid": "own"})
    with pytest.raises(UserMistake, match="alg value is not allowed"):
        desk.ask(by_secret(desk.claims(), b"s" * 40))
    desk.publish({"kty": "RSA", "n": "%%%", "e": [], "kid": "own"})
    with pytest.raises(RunEnded, match="invalid key `own`"):
        desk.ask(token)
    desk.publish({"kty": "odd", "kid": "x"}, published())
    assert desk.ask(token) == (desk.issuer, "u")


@pytest.mark.parametrize("path", ["/keys", "/.well-known/openid-configuration"])
def test_what_a_provider_says_is_read_within_bounds(
    desk: Desk, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openid, "_SECONDS", 0.5)
    token = desk.token()
    for body in (b"<html>", b"", b"\xff", b"[]", b"[" * 100_000, b" " * 3_000_000, b"slow"):
        desk.served[path] = body
        begun = time.monotonic()
        with pytest.raises(RunEnded):
            desk.ask(token)
        assert time.monotonic() - begun < 5


def test_addresses_that_are_none(desk: Desk) -> None:
    for address in ("https://[::1", "file:///etc/passwd", "http://a.example/k", "https://a/#b"):
        desk.describe(issuer=desk.issuer, jwks_uri=address)
        with pytest.raises(UserMistake, match="could be replaced in transit"):
            desk.ask(desk.token())
