"""Orders of medical pictures: what a prompt in controlled clinical English asks for.

:func:`~medtest.language.orders.reading.read_order` reads a text, :func:`~medtest.language.orders.writing.write_order`
writes one, and :func:`~medtest.language.orders.contents.order_pool` gives the pool by which pictures are judged. Words
are data (``words.yaml``). Readers of pictures report scenes in the names of these pools:

- a finding is an entity, by the vocabulary's name (``effusion``, ``polyp``); a reader that counts lists every instance;
- side, size, Paris type and colour are attributes: ``left``, ``right`` or ``bilateral`` (the patient's sides), one of
  :data:`~medtest.language.orders.contents.SIZES`, ``Paris Ip``, ``Paris Is`` or ``Paris IIa``, and a colour's name. A
  finding has at most one of each group;
- negated findings are in ``Pool.absent``, uncertain ones in ``Pool.uncertain``; neither is an entity.
"""

from medtest.language.orders.contents import attributes_of, order_pool
from medtest.language.orders.order import NotControlled, Order, OrderedFinding, Presence, Side
from medtest.language.orders.reading import OrderReading, read_order
from medtest.language.orders.vocabulary import vocabulary
from medtest.language.orders.writing import Wording, write_order

__all__ = [
    "OrderedFinding",
    "NotControlled",
    "Order",
    "OrderReading",
    "Presence",
    "Side",
    "Wording",
    "attributes_of",
    "order_pool",
    "read_order",
    "vocabulary",
    "write_order",
]
