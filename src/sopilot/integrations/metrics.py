"""Metrics of a server, for Prometheus (extra ``metrics``).

Every metric is named in this file. Without the library nothing is counted, and nothing breaks.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import Any, cast

from sopilot.messages.errors import StoreUnavailable, mistake
from sopilot.records.store import Store

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
COUNTERS = {
    "requests": ("HTTP requests, by status", ("status",)),
    "calls": ("calls of clients, by outcome: ok, not_done, unknown, failed", ("outcome",)),
    "steps": ("calls of the bookkeeping tool", ()),
    "takeovers": ("sessions taken over from another process", ()),
    "orphans": ("irreversible calls that a server left open when it died", ()),
    "store_failures": ("failed operations of the store", ("operation",)),
    "upstream_failures": ("calls of upstream servers that were interrupted", ("upstream",)),
    "sweep_failures": ("failed searches for orphaned calls", ()),
}


GAUGES = {
    "sessions": ("sessions in the store, by state", ("state",)),
    "seats": ("sessions that this process holds open", ()),
    "unknown_outcomes": ("sessions with a call whose outcome is unknown", ()),
    "approvals_waiting": ("calls that wait for people", ()),
    "approvals_oldest_seconds": ("seconds that the oldest of them has waited", ()),
    "draining": ("1 while this process is being stopped", ()),
}


TIMES = {
    "request": ("HTTP requests, from the first byte to the last", ()),
    "store": ("operations of the store", ("operation",)),
    "upstream": ("calls of upstream servers", ("upstream",)),
}


class NoMetrics:
    """Counts nothing."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """One of ``COUNTERS``."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """One of ``GAUGES``."""

    def time(self, name: str, seconds: float, **labels: str) -> None:
        """One of ``TIMES``."""

    @contextmanager
    def timing(self, name: str, **labels: str) -> Iterator[None]:
        """Time what happens inside."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.time(name, time.perf_counter() - begun, **labels)

    def text(self) -> bytes:
        raise mistake(
            "missing-extra",
            "the metrics library isn't installed",
            help="pip install 'sopilot[metrics]'",
        )


class PrometheusMetrics(NoMetrics):
    def __init__(self) -> None:
        import prometheus_client as prometheus

        self._library: Any = prometheus
        self._registry: Any = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self._registry)
        self._made: dict[str, Any] = {}
        histogram = partial(prometheus.Histogram, buckets=_SECONDS)
        for table, kind in (
            (COUNTERS, prometheus.Counter),
            (GAUGES, prometheus.Gauge),
            ({f"{name}_seconds": entry for name, entry in TIMES.items()}, histogram),
        ):
            for name, (message, labels) in table.items():
                self._made[name] = kind(f"sopilot_{name}", message, labels, registry=self._registry)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self._of(name, labels).inc(amount)

    def set(self, name: str, value: float, **labels: str) -> None:
        self._of(name, labels).set(value)

    def time(self, name: str, seconds: float, **labels: str) -> None:
        self._of(f"{name}_seconds", labels).observe(seconds)

    def text(self) -> bytes:
        return bytes(self._library.generate_latest(self._registry))

    def _of(self, name: str, labels: dict[str, str]) -> Any:
        made = self._made[name]
        return made.labels(**labels) if labels else made


def metrics() -> NoMetrics:
    """The metrics of this process; without the library, nothing is counted."""
    return PrometheusMetrics() if find_spec("prometheus_client") is not None else NoMetrics()


def metered(store: Store, meter: NoMetrics) -> Store:
    """The store, with every operation timed if there are metrics."""
    return store if type(meter) is NoMetrics else cast(Store, _MeteredStore(store, meter))


class _MeteredStore:
    def __init__(self, store: Store, meter: NoMetrics) -> None:
        self._store = store
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = getattr(self._store, name)
        if not iscoroutinefunction(own):
            return own
        self._meter.count("store_failures", 0, operation=name)  # so that the first one shows
        timed = _timed(own, name, self._meter)
        setattr(self, name, timed)  # wrapped once per operation
        return timed


def _timed(
    own: Callable[..., Awaitable[Any]], name: str, meter: NoMetrics
) -> Callable[..., Awaitable[Any]]:
    async def timed(*values: Any, **named: Any) -> Any:
        try:
            with meter.timing("store", operation=name):
                return await own(*values, **named)
        except StoreUnavailable:  # a lease that another has is an answer
            meter.count("store_failures", operation=name)
            raise

    return timed
