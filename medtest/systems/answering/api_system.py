"""Base class of systems over an API: address, key, ledger, cache, budget, call loop and account.

Calls, limits, retries, cache, ledger and budget are implemented in :mod:`medtest.api`. A subclass defines the model
parameters (:meth:`ApiSystem.parameters`), the requests (:meth:`ApiSystem.request`) and the conversion of outcomes
(:meth:`ApiSystem.asked`).
"""

from __future__ import annotations

import hashlib
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from medtest.api.budget import Budget, Price, estimate, price_for
from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import Outcome, Parameters, Request
from medtest.api.calls.retry import Retries
from medtest.api.campaign import Campaign
from medtest.api.drawn.kept import KeptPictures
from medtest.api.pacing.rate_limiter import RateLimiter, shared_limiter
from medtest.api.store.cache import Cache, CacheMode
from medtest.api.store.ledger import Ledger, doubtful_words
from medtest.core.cases import Json
from medtest.core.errors import MedtestError, Mistake
from medtest.core.plugins import TRUSTED, typed_as
from medtest.systems.answering.asking import Asked, Asking, AskingSystem, BudgetLimits, Quote
from medtest.systems.answering.misplaced_keys import holds_secret, unnamed
from medtest.systems.base import SystemSettings

LEDGER = "ledger.sqlite"
"""File name of the ledger in the run folder."""
CACHE = "answers.sqlite"
"""File name of the cache in the folder shared by all runs."""
_WAIT_SECONDS = 10.0
_MARGIN_SECONDS = 60.0


class EndpointSettings(SystemSettings):
    """Settings of a service over an API. Suites may not set those that concern address, speed and cost.

    Attributes:
        base_url: ``https://host/v1``; plain http to this machine only.
        key_variable: Name of the environment variable with the key; "" for servers without a key.
        model: Server's name of the model; preferably a dated snapshot.
        seed: ``case`` (derived from the suite's seed and the case's address), a number, or null: not sent.
        extra: Further fields of the request body, e.g. ``{reasoning_effort: low}``.
        prices: Prices by model name.
        max_in_flight: Maximum number of concurrent calls; the smallest value of all systems that share a server and a
            key applies to them together. Fewer calls are sent if more would only queue at the server.
        call_seconds: Time limit of one call.
        total_seconds: Time limit of one question from its first call on, retries and pauses included, but not the wait
            for other calls to end: no call starts after it. A server that asks for a longer pause ends the run.
        attempts: Maximum number of calls per question.
    """

    own_fields: ClassVar[frozenset[str]] = frozenset()
    """Body fields needed to read answers and keep budgets; they have settings of their own or a fixed value."""

    base_url: str = Field(default="", json_schema_extra=TRUSTED)
    key_variable: str = Field(default="", json_schema_extra=TRUSTED)
    model: str = Field(default="", max_length=200, json_schema_extra=typed_as("model_name"))
    seed: Literal["case"] | int | None = "case"
    extra: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    prices: Mapping[str, Price] = Field(default={}, json_schema_extra=TRUSTED)
    max_in_flight: int = Field(default=32, ge=1, le=1024, json_schema_extra=TRUSTED)
    call_seconds: float = Field(default=120.0, gt=0, le=3600, json_schema_extra=TRUSTED)
    total_seconds: float = Field(default=900.0, gt=0, le=86_400, json_schema_extra=TRUSTED)
    attempts: int = Field(default=6, ge=1, le=20, json_schema_extra=TRUSTED)

    @field_validator("base_url", "key_variable", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        """Accept any value as text, because a validation error would print a key typed in the wrong place.

        Mistakes are reported before the run without the value (:meth:`medtest.api.calls.client.Endpoint.mistakes`).
        """
        return value if value is None else str(value)

    @field_validator("extra")
    @classmethod
    def _check_extra(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(cls.own_fields & set(extra)):
            raise ValueError(f"fields of the body other than {', '.join(reserved)}, which medtest sets itself")
        return extra


class ApiSystem(AskingSystem):
    """System over an API. A subclass may override the server's address (:meth:`endpoint`).

    Attributes:
        sends: Kind of content sent to the server, for messages: ``images`` or ``prompts``.
    """

    Settings: ClassVar[type[EndpointSettings]] = EndpointSettings
    settings: EndpointSettings
    own_limits: ClassVar[bool] = True
    sends: ClassVar[str] = "images"
    _folder: Path | None = None
    _shared: Path | None = None
    _limits = BudgetLimits()
    _cache_mode = CacheMode.USE
    _ledger: Ledger | None = None
    _cache: Cache | None = None
    _budget: Budget | None = None
    _campaign: Campaign | None = None
    _limiter: RateLimiter | None = None
    _store: KeptPictures | None = None
    _line = ""

    def __init__(self, name: str, settings: EndpointSettings) -> None:
        super().__init__(name, settings)
        self._stopping = threading.Event()

    # --------------------------------------------------------------------------------------------- before the run

    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Return the endpoint of requests; called again for every stream of calls."""

    @abstractmethod
    def parameters(self) -> Parameters:
        """Return all parameters of the model that influence its answers."""

    @abstractmethod
    def request(self, call: Asking) -> Request:
        """Return the request of a call."""

    @abstractmethod
    def asked(self, call: Asking, outcome: Outcome) -> Asked:
        """Convert the outcome of a call."""

    def drawn(self, folder: Path, shared: Path) -> KeptPictures | None:
        """Return the store of generated pictures; None for a service that generates none.

        Args:
            folder: The run folder.
            shared: The folder shared by all runs.
        """
        return None

    def price(self) -> Price | None:
        """Return the model's price, None if unknown."""
        return price_for(self.settings.model, self.settings.prices)

    def notice(self) -> str:
        """Return a notice of the model and where images are sent."""
        endpoint = self.endpoint()
        host = urlsplit(endpoint.base_url).netloc
        where = f"{self.sends} stay on this machine" if endpoint.loopback else f"{self.sends} are sent there"
        priced = "" if endpoint.loopback or self.price() is not None else "; no price is known"
        return f"{self.record_name} asks {self.settings.model} at {host}: {where}{priced}."

    def check(self) -> Sequence[Mistake]:
        """Return missing settings: address, model name, key, permission to send images."""
        mistakes = unnamed(self.settings, self.endpoint(), self.name, model="model", sends=self.sends)
        if holds_secret(self.settings.extra):
            shown = "what looks like a key (not shown)"
            fix = "set key_variable to the variable that holds it: extra is written to run.json"
            mistakes.append(
                Mistake(where=self.name, key="extra", found=shown, allowed="fields without secrets", fix=fix)
            )
        return mistakes

    def fingerprint(self) -> dict[str, Json]:
        """Return a hash of the server's address, and extra body fields: neither is in the settings' digest."""
        provider = self.endpoint().provider.rstrip("/")
        printed: dict[str, Json] = {"provider": hashlib.sha256(provider.encode()).hexdigest()}
        if self.settings.extra:
            printed["extra"] = dict(self.settings.extra)
        return printed

    def quote(self, calls: Iterable[tuple[Asking, int]]) -> Quote | None:
        """Return calls, tokens and price, assuming answers of maximum length."""
        total, prompt, completion, usd = 0, 0, 0, 0.0
        price, parameters = self.price(), self.parameters()
        for call, count in calls:
            tokens = estimate(self.request(call), parameters)
            total += count
            prompt += count * tokens.prompt
            completion += count * tokens.completion
            usd += 0.0 if price is None else count * price.of(tokens.prompt, tokens.completion, tokens.pictures)
        return Quote(
            calls=total, prompt_tokens=prompt, completion_tokens=completion, usd=None if price is None else usd
        )

    @property
    def silent_seconds(self) -> float:  # type: ignore[override]
        """Longest silence: a pause before a question's first call, its whole time after it, and its last call."""
        own: EndpointSettings = self.settings
        return 2.0 * own.total_seconds + own.call_seconds + _MARGIN_SECONDS

    # ------------------------------------------------------------------------------------------------------- the run

    def keep_in(self, folder: Path, shared: Path, *, budget: BudgetLimits, cache: str) -> None:
        """Set the run folder, the shared folder, the budget and the cache mode."""
        self._folder, self._shared = folder, shared
        self._limits, self._cache_mode = budget, CacheMode(cache)

    def open(self, *, device: str, threads: int) -> None:
        """Open ledger and cache, and count what earlier sessions of the run spent.

        Raises:
            UserMistakes: The endpoint is not usable, or a budget in dollars has no price.
            FolderInUse: Another process holds the ledger.
            OutputProblem: Ledger or cache cannot be used.
        """
        if self._folder is None or self._shared is None:
            raise MedtestError(f"{self.record_name} has no folder for its ledger")
        # The folder belongs to this run, so any other holder of the ledger is a worker of the run that is exiting.
        self._ledger = Ledger(self._folder / LEDGER, wait=_WAIT_SECONDS)
        self._budget = self.budget(self._ledger, self._limits, self.name)
        self._cache = Cache(self._shared / CACHE, self._cache_mode)
        self.caller(self.name)  # checks the endpoint before the first call
        self._limiter = shared_limiter(self.endpoint().limited_as, self.settings.max_in_flight)
        self._store = self.drawn(self._folder, self._shared)
        import httpx2  # noqa: F401 - a quarter of a second, which no call should wait for

    def budget(self, ledger: Ledger, limits: BudgetLimits, where: str) -> Budget:
        """Return the limits, reduced by the spending of earlier sessions.

        Raises:
            UserMistakes: A budget in dollars has no price.
        """
        spent = ledger.totals()
        return Budget(**asdict(limits), price=self.price(), spent_usd=spent.cost_usd, calls=spent.billable, where=where)

    def caller(self, where: str, *, pictures: bool = True) -> Caller:
        """Return the caller that sends requests.

        Raises:
            UserMistakes: The endpoint is not usable.
        """
        own = self.settings
        return Caller(
            self.endpoint(),
            self.parameters(),
            max_in_flight=own.max_in_flight,
            call_seconds=own.call_seconds,
            pictures=pictures,
            where=where,
            poll_seconds=getattr(own, "poll_seconds", 3.0),  # a setting of services that run tasks
        )

    def campaign(
        self, caller: Caller, ledger: Ledger, cache: Cache | None, budget: Budget | None, limiter: RateLimiter | None
    ) -> Campaign:
        """Return a campaign with the model's own time limits."""
        own = self.settings
        rules = Retries(attempts=own.attempts, call_seconds=own.call_seconds, total_seconds=own.total_seconds)
        return Campaign(
            caller, ledger, cache=cache, budget=budget, limiter=limiter, retries=rules, pictures=self._store
        )

    def ask(self, calls: Iterable[Asking | None]) -> Iterator[Asked]:
        """Answer a stream of calls.

        In all cases, outcomes of calls in flight are yielded before an error is raised.

        Raises:
            BudgetReached: The budget allows no further call.
            ServerClosed: The server asks for a longer pause than a question may last.
            CampaignStopped: The account is empty, or the server is unreachable or refuses requests.
        """
        if self._ledger is None:
            raise MedtestError(f"{self.record_name} is not open")
        caller = self.caller(self.name)
        self._campaign = self.campaign(caller, self._ledger, self._cache, self._budget, self._limiter)
        if self._stopping.is_set():
            self._campaign.stop()
        waiting: dict[str, deque[Asking]] = {}
        lock = threading.Lock()

        def requests() -> Iterator[Request | None]:  # runs in a thread of the campaign
            for call in calls:
                if call is not None:
                    with lock:
                        waiting.setdefault(call.label, deque()).append(call)
                yield None if call is None else self.request(call)

        for outcome in self._campaign.iterate(requests()):
            with lock:
                same = waiting[outcome.address]
                call = same.popleft()
                if not same:
                    del waiting[outcome.address]
            yield self.asked(call, outcome)

    def stop(self) -> None:
        """Start no further call; those in flight finish as usual."""
        self._stopping.set()
        if self._campaign is not None:
            self._campaign.stop()

    def counters(self) -> str:
        """Return the progress of the calls."""
        if self._campaign is not None:
            try:
                self._line = self._campaign.progress().line()
            except RuntimeError:  # a counter was added during the copy: reuse the last line
                return self._line
        return self._line

    def account(self, folder: Path) -> str:
        """Return a notice of calls that may be billed without an answer."""
        remarks = [doubtful_words(folder / LEDGER, self.record_name)]
        aside = sorted(path.name for path in folder.glob(f"{LEDGER}.aside-*") if path.name[-1].isdigit())
        if aside:
            remarks.append(
                f"{self.record_name}: a damaged {LEDGER} was set aside as {aside[-1]}; no budget counts its calls."
            )
        return " ".join(filter(None, remarks))

    def close(self) -> None:
        """Close ledger and cache."""
        if self._cache is not None:
            self._cache.close()
        if self._ledger is not None:
            self._ledger.close()
        if self._store is not None:
            self._store.close()
        self._cache = self._ledger = self._limiter = self._store = None
