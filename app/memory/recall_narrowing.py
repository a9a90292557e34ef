"""What a retrieval for fewer things would have found, out of one for more. Pure.

So recall is asked once for a question and its settings can be tried as often as one likes. How much
`RecallService.retrieve` brings back for its options is repeated here, and only here.
"""

from dataclasses import replace

from app.domain.ids import MessageId
from app.domain.retrieved import RecallOptions, Retrieved
from app.domain.settings_schema import SETTINGS
from app.memory.recall import SPARE


def widest(half_life_days: float) -> RecallOptions:
    """Return options that find whatever any settings of the limits would; age is weighed by one."""
    return RecallOptions(
        conversation_limit=_most("rag_conversation_limit"),
        exchange_limit=_most("rag_exchange_limit_per_conversation"),
        history_limit=_most("rag_history_limit"),
        fact_limit=_most("rag_fact_limit"),
        earlier_limit=1_000,  # more than are considered: those in the prompt are left out later
        half_life_days=half_life_days,
    )


def narrowed(found: Retrieved, options: RecallOptions, held: frozenset[MessageId]) -> Retrieved:
    """Return of what the widest options found what these find; `held` as in a `Segment`.

    Of a conversation with branches that share a question a spare turn may be another one.
    """
    if not options.is_related_wanted:
        found = replace(found, facts=(), conversations=(), history=())
    if not options.is_earlier_wanted:
        found = replace(found, earlier=())
    exchanges = options.exchange_limit + SPARE
    taken = options.conversation_limit * options.exchange_limit
    earlier = [each for each in found.earlier if each.message_id not in held]
    return replace(
        found,
        facts=found.facts[: _with_spare(options.fact_limit)],
        conversations=tuple(
            replace(each, exchanges=each.exchanges[:exchanges])
            for each in found.conversations[: options.conversation_limit + SPARE]
        ),
        history=found.history[: _with_spare(options.history_limit, taken)],
        earlier=tuple(earlier[: options.earlier_limit + SPARE]),
    )


def _most(key: str) -> int:
    return int(SETTINGS[key].maximum or 0)


def _with_spare(limit: int, more: int = 0) -> int:
    return limit + more + SPARE if limit else 0
