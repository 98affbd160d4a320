"""A small OpenID Connect provider in a process of its own: description, keys, signed tokens.

``python openid_provider.py`` prints its issuer, then answers until its standard input ends.
``/token?sub=S&aud=A&seconds=N&key=other`` makes a token; ``other`` signs with a key that is
not published.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("own", "other")}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        asked = urlsplit(self.path)
        if asked.path == "/.well-known/openid-configuration":
            self._answer({"issuer": issuer, "jwks_uri": f"{issuer}/keys"})
        elif asked.path == "/keys":
            public = RSAAlgorithm.to_jwk(KEYS["own"].public_key(), as_dict=True)
            self._answer({"keys": [{**public, "kid": "own", "use": "sig", "alg": "RS256"}]})
        else:
            given = {name: values[0] for name, values in parse_qs(asked.query).items()}
            now = int(time.time())
            claims = {
                "iss": given.get("iss", issuer),
                "sub": given["sub"],
                "aud": given["aud"],
                "iat": now,
                "exp": now + int(given.get("seconds", "600")),
            }
            key = KEYS[given.get("key", "own")]
            token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": "own"})
            self._answer({"token": token})

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()
