"""Merkle trees as RFC 6962 defines them: roots, inclusion and consistency proofs. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def leaf_hashes(every: Iterable[bytes]) -> list[bytes]:
    """Hash all leaves in one call: one call for each would cost half as much again."""
    sha256 = hashlib.sha256
    return [sha256(b"\x00" + data).digest() for data in every]


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_hash(leaves: Sequence[bytes]) -> bytes:
    return roots_at(leaves, (len(leaves),))[len(leaves)]


def roots_at(leaves: Sequence[bytes], sizes: Iterable[int]) -> dict[int, bytes]:
    """The roots of the trees of the first so many leaf hashes; of more than there are, none.

    Every whole subtree is hashed once, level by level; a tree of any size is put together from
    the subtrees that its number's bits name.
    """
    sha256, levels = hashlib.sha256, [leaves]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = zip(below[::2], below[1::2], strict=False)  # the odd one out has no neighbour
        levels.append([sha256(b"\x01" + left + right).digest() for left, right in pairs])
    roots = {}
    for size in sizes:
        if size > len(leaves):
            continue
        result = None if size else sha256(b"").digest()
        for height, level in enumerate(levels):
            if size >> height & 1:
                tree = level[(size >> height) - 1]
                result = tree if result is None else _node(tree, result)
        assert result is not None
        roots[size] = result
    return roots


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The siblings on the way from the leaf to the root."""
    if len(leaves) <= 1:
        return []
    cut = _split(len(leaves))
    if index < cut:
        return [*inclusion_proof(leaves[:cut], index), root_hash(leaves[cut:])]
    return [*inclusion_proof(leaves[cut:], index - cut), root_hash(leaves[:cut])]


def proves_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    if not 0 <= index < size:
        return False
    place, last, node = index, size - 1, leaf
    for neighbour in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = _node(neighbour, node)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            node = _node(node, neighbour)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Prove that the tree of the first ``old`` leaves is the beginning of this one."""
    if old in (0, len(leaves)):
        return []
    return _subproof(leaves, old, True)


def _subproof(leaves: Sequence[bytes], old: int, whole: bool) -> list[bytes]:
    if old == len(leaves):
        return [] if whole else [root_hash(leaves)]
    cut = _split(len(leaves))
    if old <= cut:
        return [*_subproof(leaves[:cut], old, whole), root_hash(leaves[cut:])]
    return [*_subproof(leaves[cut:], old - cut, False), root_hash(leaves[:cut])]


def proves_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]
) -> bool:
    if not 0 <= old <= new:
        return False
    if old == new:
        return old_root == new_root and not path
    if old == 0:
        return not path and old_root == root_hash(())
    rest = list(path)
    if old & (old - 1) == 0:
        rest.insert(0, old_root)
    if not rest:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    first = second = rest[0]
    for neighbour in rest[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            first, second = _node(neighbour, first), _node(neighbour, second)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            second = _node(second, neighbour)
        place, last = place >> 1, last >> 1
    return last == 0 and first == old_root and second == new_root
