"""Ed25519 verification as in RFC 8032, without a library. Pure."""

from __future__ import annotations

import hashlib

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
Point = tuple[int, int, int, int]


def _add(point: Point, other: Point) -> Point:
    x1, y1, z1, t1 = point
    x2, y2, z2, t2 = other
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(number: int, point: Point) -> Point:
    result: Point = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = _add(result, point)
        point, number = _add(point, point), number >> 1
    return result


def _point(raw: bytes) -> Point | None:
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


_BASE = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))


def signed_by(key: str, signature: str, message: bytes) -> bool:
    try:
        public, raw = bytes.fromhex(key), bytes.fromhex(signature)
    except ValueError:
        return False
    if len(public) != 32 or len(raw) != 64:
        return False
    a, r, s = _point(public), _point(raw[:32]), int.from_bytes(raw[32:], "little")
    if a is None or r is None or _BASE is None or s >= _ORDER:
        return False
    digest = hashlib.sha512(raw[:32] + public + message).digest()
    left = _times(s, _BASE)
    right = _add(r, _times(int.from_bytes(digest, "little") % _ORDER, a))
    return (
        not (left[0] * right[2] - right[0] * left[2]) % _P
        and not (left[1] * right[2] - right[1] * left[2]) % _P
    )
