"""Pools of orders: the entities and attributes by which pictures are judged."""

from __future__ import annotations

from medtest.core.scenes import SIDES, Entity, Pool, alphabetical
from medtest.language.orders.findings import is_whole
from medtest.language.orders.order import Order, OrderedFinding
from medtest.language.orders.vocabulary import vocabulary

SIZES: tuple[str, ...] = ("<5mm", "5-10mm", "11-20mm", ">20mm")
"""Classes of size, as in the questions of MEDVQA-GI."""
PARIS: tuple[str, ...] = ("Paris Ip", "Paris Is", "Paris IIa")
"""Attributes for Paris types."""


def size_class(millimetres: float) -> str:
    """Return the class of a diameter; 5 and 10 mm are in the second class, 20 mm in the third."""
    return SIZES[(millimetres >= 5.0) + (millimetres > 10.0) + (millimetres > 20.0)]


def attributes_of(finding: OrderedFinding) -> tuple[str, ...]:
    """Return a finding's attributes in pools; a midline finding has no side."""
    values = (
        finding.side if finding.side in SIDES else None,
        None if finding.size_mm is None else size_class(finding.size_mm),
        f"Paris {finding.paris}" if finding.paris else None,
        finding.colour or None,
    )
    return alphabetical(value for value in values if value)


def order_pool(order: Order) -> Pool:
    """Return the pool of an order.

    Ordered findings are entities. Negated ones are absent, all of the modality's if the text says "normal". Neither
    demanded nor forbidden are uncertain findings, those both ordered and negated, and those of which only a part is
    negated ("no left effusion").
    """
    disputed = {clash.finding for clash in order.contradictions if clash.about == "presence"}
    ordered = [finding for finding in order.findings if finding.presence == "ordered" and finding.name not in disputed]
    negations = [finding for finding in order.findings if finding.presence == "negated"]
    uncertain = {finding.name for finding in order.findings if finding.presence == "uncertain"}
    uncertain |= disputed | {finding.name for finding in negations if not is_whole(finding)}
    names = {finding.name for finding in ordered}
    negated = {finding.name for finding in negations if is_whole(finding)}
    if order.normal:
        negated |= set(vocabulary().modalities[order.modality].findings)
    return Pool(
        entities=tuple(
            Entity(name=finding.name, count=finding.count, attributes=attributes_of(finding)) for finding in ordered
        ),
        absent=alphabetical(negated - uncertain - names),
        uncertain=alphabetical(uncertain - names),
    )
