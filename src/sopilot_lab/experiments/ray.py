"""Shards on Ray (extra ``ray``): the folder must be one that every node sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import ray

from sopilot.messages.errors import RunEnded
from sopilot.runner.processes import ray_cluster
from sopilot_lab.experiments.run_folder import RunFolder
from sopilot_lab.experiments.sweep import Shard, run_shard

MOST_ROUNDS = 5
_PIECE = 16
"""Tasks that a dead worker can cost at most are started again: small pieces, little loss."""


def run_on_ray(parts: Sequence[Shard]) -> None:
    """Run every task of the parts, in pieces. If a worker dies, another worker gets the tasks of
    its piece that have no record."""
    with ray_cluster(len(parts)):
        pieces = [piece for part in parts for piece in _pieces(part)]
        for _ in range(MOST_ROUNDS):
            pieces = _round(pieces)
            if not pieces:
                return
        raise RunEnded(f"Ray workers died in {MOST_ROUNDS} rounds in a row; start the sweep again")


def _round(pieces: Sequence[Shard]) -> list[Shard]:
    remote = ray.remote(max_retries=0, num_cpus=1)(run_shard)
    waiting = {remote.remote(piece): piece for piece in pieces}
    left: list[Shard] = []
    while waiting:
        ready, _ = ray.wait(list(waiting), num_returns=1)
        piece = waiting.pop(ready[0])
        try:
            ray.get(ready[0])
        except ray.exceptions.WorkerCrashedError:
            done = RunFolder.open(piece.folder).records()
            rest = tuple(each for each in piece.references if str(each) not in done)
            if rest:
                left.append(replace(piece, references=rest))
    return left


def _pieces(part: Shard) -> list[Shard]:
    starts = range(0, len(part.references), _PIECE)
    return [replace(part, references=part.references[start : start + _PIECE]) for start in starts]
