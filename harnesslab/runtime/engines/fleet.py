"""Which children an engine host has, and what has become of those that ended."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harnesslab.core.canonical import JSON
from harnesslab.core.errors import FormatRefused
from harnesslab.runtime.engines.children import LlamaProcess, ProcessExit, start
from harnesslab.runtime.engines.configuration import Configuration
from harnesslab.runtime.engines.gguf import Head, read_head

IDLE_S = 600.0
KEPT_ENDINGS = 100
HEALTH_S = 10.0
DEAF_TIMES = 3
"""A child that did not answer this often in a row is ended; the next request starts it anew."""


class Fleet:
    """Starts, watches and ends children; safe to be used by many threads."""

    def __init__(self, say: Callable[[str], None], *, idle: float = IDLE_S) -> None:
        self._say = say
        self._idle = idle
        self._spawner = ThreadPoolExecutor(1, "spawner")
        self._spawner.submit(lambda: None).result()  # its thread must not be that of a request
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        self._children: dict[str, LlamaProcess] = {}
        self._endings: OrderedDict[int, ProcessExit] = OrderedDict()
        self._weights: dict[tuple[str, int, int], tuple[str, Head]] = {}
        self._asked_at = time.monotonic()
        self._closed = False

    def ensure(self, configuration: Configuration) -> dict[str, JSON]:
        """Return where a child of this configuration listens, starting it where none runs; raises `ChildFailed`."""
        # a lock a configuration: two that ask for one start it once, and no other waits while a model loads
        with self._lock_of(configuration.key):
            child = self._children.get(configuration.key)
            if child is not None and not child.running:
                self._note_ending(child)
                child = None
            if child is None:
                child = self._start(configuration)
            child.used_at = time.monotonic()
        digest, head = self._weights_of(configuration.model)
        known: dict[str, JSON] = {"weights": digest, "tokenizer": head.tokenizer, "name": head.name}
        return {**known, **child.facts, "pid": child.process.pid, "key": child.key}

    def stop(self, configuration: Configuration) -> bool:
        """End the child of a configuration and say whether there was one."""
        with self._lock_of(configuration.key):
            child = self._children.get(configuration.key)
            if child is None:
                return False
            child.stop()
            self._note_ending(child)
            return True

    def status(self) -> list[JSON]:
        """Describe the children that run."""
        with self._lock:
            children = list(self._children.values())
        return [
            {
                "configuration": child.configuration.to_json(),
                "pid": child.process.pid,
                "address": child.facts.get("address"),
                "idle": round(time.monotonic() - child.used_at, 1),
            }
            for child in children
            if child.running
        ]

    def ending(self, pid: int, wait: float = 2.0) -> ProcessExit | None:
        """Say how a child ended; None where it still runs after `wait` seconds, or never was."""
        deadline = time.monotonic() + wait
        while True:
            self._reap()
            if pid in self._endings:
                return self._endings[pid]
            with self._lock:
                known = any(child.process.pid == pid for child in self._children.values())
            if not known or time.monotonic() > deadline:
                return None
            time.sleep(0.05)

    def watch(self) -> None:
        """Look after the children once: note the dead, end the idle and the deaf."""
        self._reap()
        now = time.monotonic()
        ask, self._asked_at = (True, now) if now - self._asked_at >= HEALTH_S else (False, self._asked_at)
        with self._lock:
            children = list(self._children.values())
        for child in children:
            idle = now - child.used_at > self._idle
            if idle and child.running and not child.busy():
                self._say(f"llama.cpp {child.process.pid} was idle and is ended")
                self.stop(child.configuration)
            elif ask and child.running:
                child.deaf = 0 if child.healthy() else child.deaf + 1
                if child.deaf >= DEAF_TIMES:
                    self._say(f"llama.cpp {child.process.pid} does not answer and is ended")
                    self.stop(child.configuration)

    def close(self) -> None:
        """End all children, and start no more."""
        with self._lock:
            self._closed = True
            children = list(self._children.values())
        for child in children:
            child.stop()
        self._spawner.shutdown()

    def _start(self, configuration: Configuration) -> LlamaProcess:
        began = time.monotonic()
        child = start(configuration, self._spawner, self._say)
        with self._lock:
            closed = self._closed
            self._children[configuration.key] = child
        if closed:  # while it loaded: `close` could not know of it
            child.stop()
        took = time.monotonic() - began
        self._say(f"llama.cpp {child.process.pid} listens at {child.facts.get('address')} after {took:.1f} s")
        return child

    def _reap(self) -> None:
        with self._lock:
            children = list(self._children.values())
        for child in children:
            if not child.running:
                self._note_ending(child)

    def _note_ending(self, child: LlamaProcess) -> None:
        ending = child.ending()
        with self._lock:
            if self._children.get(child.configuration.key) is child:  # another may run in its place by now
                del self._children[child.configuration.key]
            if child.process.pid in self._endings:
                return
            self._endings[child.process.pid] = ending
            while len(self._endings) > KEPT_ENDINGS:
                self._endings.popitem(last=False)
        if not child.stopping:
            self._say(ending.sentence)

    def _lock_of(self, key: str) -> threading.Lock:
        with self._lock:
            return self._starting.setdefault(key, threading.Lock())

    def _weights_of(self, model: str) -> tuple[str, Head]:
        """Digest a model file, once for as long as it stays the same file."""
        path = Path(model)
        stat = path.stat()
        key = (model, stat.st_size, stat.st_mtime_ns)
        if key not in self._weights:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            try:
                head = read_head(path)
            except FormatRefused:
                head = Head("", "")
            self._weights[key] = (digest, head)
        return self._weights[key]
