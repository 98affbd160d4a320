"""The retrieval baseline: the functions that fit the recent dialog best, by BM25."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from sopilot.language.render import render_function
from sopilot.runtime.agent.arms._view import View

TOP = 5
"""Functions shown."""
RECENT = 4
"""Messages that make the query."""
_K1, _B = 1.5, 0.75
_WORD = re.compile(r"[^\W_]+")


def retrieval_slot(view: View) -> str:
    texts = _functions(view)
    recent = [message.content for message in view.dialog if message.content][-RECENT:]
    chosen = best(" ".join(recent), texts, TOP)
    return "\n\n".join(texts[index] for index in chosen)


def best(query: str, documents: Sequence[str], count: int) -> list[int]:
    """Indices of the documents that fit the query best, in their own order; ties go to the
    earlier one."""
    scores = bm25(query, documents)
    ranked = sorted(range(len(documents)), key=lambda index: (-scores[index], index))
    return sorted(ranked[:count])


def bm25(query: str, documents: Sequence[str]) -> list[float]:
    bags = [_bag(document) for document in documents]
    lengths = [sum(bag.values()) for bag in bags]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    scores = [0.0] * len(bags)
    for word in set(_words(query)):
        holding = sum(1 for bag in bags if word in bag)
        if not holding:
            continue
        rarity = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
        for index, bag in enumerate(bags):
            often = bag[word]
            norm = often + _K1 * (1 - _B + _B * lengths[index] / (mean or 1.0))
            scores[index] += rarity * often * (_K1 + 1) / norm if often else 0.0
    return scores


def _functions(view: View) -> list[str]:
    seen: dict[str, None] = {}
    for program in view.briefing.programs.values():
        for function in program.functions.values():
            text = render_function(function, program, view.briefing.language).rstrip()
            seen.setdefault(text)
    return list(seen)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=4096)
def _bag(text: str) -> Counter[str]:
    return Counter(_words(text))
