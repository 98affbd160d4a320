"""What happened, kept: events sealed into a chain, redacted, signed, replayed.

Owns the chain of hashes, references in place of values, signatures over heads
and replay. Pure but for the key files. May import ``vm`` and the ``language``
wing.
"""

from sopilot.runtime.trace._redaction import (
    MASK,
    SecretTexts,
    holds_secret,
    is_reference,
    mask,
    redact,
    reference,
    references_in,
    restore,
    secrets_under,
    words_of,
)
from sopilot.runtime.trace._replaying import replay
from sopilot.runtime.trace.chain import (
    FORMAT,
    Head,
    SealedEvent,
    decode_line,
    encode_line,
    genesis,
    head,
    seal,
    seal_all,
    seal_line,
    verify_chain,
)
from sopilot.runtime.trace.signed_head import SignedHead, signed_head_from_json
from sopilot.runtime.trace.signing import (
    generate_key,
    load_key,
    sign_head,
    verify_head,
    write_key,
)

__all__ = [
    "FORMAT",
    "MASK",
    "Head",
    "SealedEvent",
    "SecretTexts",
    "SignedHead",
    "decode_line",
    "encode_line",
    "generate_key",
    "genesis",
    "head",
    "holds_secret",
    "is_reference",
    "load_key",
    "mask",
    "redact",
    "reference",
    "references_in",
    "replay",
    "restore",
    "seal",
    "seal_all",
    "seal_line",
    "secrets_under",
    "sign_head",
    "signed_head_from_json",
    "verify_chain",
    "verify_head",
    "words_of",
    "write_key",
]
