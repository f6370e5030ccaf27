"""Systems behind the simulated laboratory's server: its faults and its life cycle."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import secrets
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from medtest.api.calls.client import Endpoint
from medtest.core.errors import MedtestError, Mistake
from medtest.simlab.config import Config
from medtest.simlab.process import Running, start
from medtest.systems.answering.api_system import ApiSystem

KEY_VARIABLE = "MEDTEST_SIMLAB_KEY"  # the name of a variable
"""Environment variable of the worker process with the server's key; generated if not set."""

RATE = Field(default=0.0, ge=0.0, le=1.0)
_NOT_SET = ("key", "hidden", "hidden_seconds", "slots")
"""Faults that suites cannot set."""


class FaultSettings(BaseModel):
    """Faults of the server (:class:`medtest.api.faulty.faults.Faults`): seconds, and shares from 0 to 1.

    Attributes:
        latency: Seconds before an answer.
        jitter: Maximum additional seconds.
        rate: Allowed requests per second; null for no limit.
        burst: Requests allowed at once under a limit.
        headers: Whether answers under a limit report the remaining quota.
        retry_after: Form of the Retry-After header of a 429.
        too_many: Share of 429 without any limit.
        error: Share of 500.
        reset: Share of connections that are reset.
        truncated: Share of bodies that are truncated.
        wrong_type: Share of HTML pages with status 200.
        slow: Share of bodies that drip over ``slow_seconds``.
        slow_seconds: Duration of a dripping body.
        refusal: Share of refusals in the provider's field.
        filtered: Share of stops by a content filter.
        length: Share of stops for length.
        takes_schema: Whether structured output is supported.
        seed: Seed of these draws, which depend on the order of arrival.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    latency: float = Field(default=0.0, ge=0.0, le=600.0)
    jitter: float = Field(default=0.0, ge=0.0, le=600.0)
    rate: float | None = Field(default=None, gt=0.0, le=100_000.0)
    burst: int = Field(default=10, ge=1, le=100_000)
    headers: bool = True
    retry_after: Literal["seconds", "date", "none"] = "seconds"
    too_many: float = RATE
    error: float = RATE
    reset: float = RATE
    truncated: float = RATE
    wrong_type: float = RATE
    slow: float = RATE
    slow_seconds: float = Field(default=3.0, ge=0.0, le=600.0)
    refusal: float = RATE
    filtered: float = RATE
    length: float = RATE
    takes_schema: bool = True
    seed: int = Field(default=0, ge=0)


class SimulatedServer(ApiSystem):
    """System with the simulated laboratory as its server, which runs from :meth:`open` to :meth:`close`.

    Attributes:
        unused: Settings of an address and a key, which have no effect.
        answer_keys: Parts of the configuration that influence answers, besides the faults.
    """

    simulated: ClassVar[bool] = True
    unused: ClassVar[tuple[str, ...]] = ("base_url", "key_variable", "extra")
    answer_keys: ClassVar[tuple[str, ...]] = ("seed",)
    _server: Running | None = None

    @abstractmethod
    def config(self) -> Config:
        """Return the server's configuration, without its key."""

    def content(self) -> str:
        """Return a digest of the settings that influence answers, which replaces the address in content keys."""
        config = asdict(self.config())
        content = {name: config[name] for name in self.answer_keys}
        content["faults"] = {name: value for name, value in config["faults"].items() if name not in _NOT_SET}
        text = json.dumps({**content, "product": self.revision}, sort_keys=True)
        return f"simlab:{hashlib.sha256(text.encode()).hexdigest()}"

    def simulation_notice(self, action: str, defects: Iterable[str]) -> str:
        """Return a notice that results say nothing about a real product."""
        return (
            f"SIMULATED: {self.record_name} is a program of medtest's on this machine that {action} "
            f"({', '.join(defects) or 'no defects'}); its figures say nothing about any real product."
        )

    def check(self) -> Sequence[Mistake]:
        """Return settings that have no effect."""
        return [
            Mistake(where=self.name, key=key, found="a value", allowed="nothing: the server is medtest's own")
            for key in self.unused
            if getattr(self.settings, key)
        ]

    def endpoint(self) -> Endpoint:
        """Return the server's address; in content keys its settings replace the address."""
        url = "http://127.0.0.1:0/v1" if self._server is None else self._server.base_url
        return Endpoint(base_url=url, key_variable="" if self._server is None else KEY_VARIABLE, name=self.content())

    def open(self, *, device: str, threads: int) -> None:
        """Start the server, then open ledger and cache.

        Raises:
            MedtestError: The server did not start.
            FolderInUse: Another process holds the ledger.
            OutputProblem: Ledger or cache cannot be used.
        """
        key = os.environ.setdefault(KEY_VARIABLE, secrets.token_urlsafe(24))
        config = self.config()
        self._server = start(replace(config, faults=replace(config.faults, key=key)))
        try:
            super().open(device=device, threads=threads)
        except BaseException:
            self.close()
            raise

    def put(self, path: str, content: object) -> None:
        """Send content to one of the server's control paths.

        Raises:
            MedtestError: The server rejects it.
        """
        if self._server is None:
            return
        address = urlsplit(self._server.base_url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
        try:
            headers = {"authorization": f"Bearer {os.environ[KEY_VARIABLE]}", "content-type": "application/json"}
            connection.request("PUT", path, json.dumps(content), headers)
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise MedtestError(f"{self.record_name} could not receive its settings (HTTP {answer.status})")

    def close(self) -> None:
        """Close ledger and cache, and stop the server."""
        try:
            super().close()
        finally:
            if self._server is not None:
                self._server.stop()
                self._server = None
