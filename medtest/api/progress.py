"""Progress of a campaign, as one line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CampaignProgress:
    """Progress of a campaign.

    Attributes:
        done: Requests with an outcome in this session.
        states: Number of them by state.
        sources: Number of them by source.
        in_flight: Calls in flight.
        waiting: Requests waiting for the limiter, or for the end of a pause before another call.
        retried: Repeated calls.
        throttled: Replies with "too many" (429).
        calls: Billable calls, over all sessions.
        cost_usd: Cost so far, over all sessions; None without a price.
        lost_before: Calls that earlier sessions left in flight: possibly billed, without an answer.
        stopping: Whether no further call is started.
    """

    done: int
    states: dict[str, int]
    sources: dict[str, int]
    in_flight: int
    waiting: int
    retried: int
    throttled: int
    calls: int
    cost_usd: float | None
    lost_before: int
    stopping: bool = False

    def line(self) -> str:
        """Return the progress as one line."""
        parts = [f"{self.done} answered" if not self.states.get("error") else f"{self.done} done"]
        reused = {name: self.sources[name] for name in ("ledger", "cache", "shared") if self.sources.get(name)}
        if reused:
            parts[0] += " (" + ", ".join(f"{count} from {name}" for name, count in reused.items()) + ")"
        parts += [f"{n} {name}" for name, n in sorted(self.states.items()) if name != "answered" and n]
        if self.stopping:
            parts.insert(0, f"stopping: {self.in_flight} {'call' if self.in_flight == 1 else 'calls'} in progress")
        else:
            parts += [f"in flight {self.in_flight}", f"waiting {self.waiting}", f"retried {self.retried}"]
        if self.cost_usd is not None:
            parts.append(f"${self.cost_usd:.4f}")
        if self.lost_before:
            parts.append(f"{self.lost_before} lost in earlier sessions")
        return " · ".join(parts)
