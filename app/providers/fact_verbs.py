"""English verbs as far as facts need them: which form a word is, and the form after he or she. Pure."""

from types import MappingProxyType

from app.providers.fact_words import word_set

# Base, past and participle; the participle is left out where it is the past.
_IRREGULAR = """
be was been; become became become; begin began begun; bite bit bitten; blow blew blown;
break broke broken; bring brought; build built; burn burnt; buy bought; catch caught;
choose chose chosen; come came come; cost cost; cut cut; deal dealt; dig dug; do did done;
draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
feed fed; feel felt; fight fought; find found; fly flew flown; forget forgot forgotten;
forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went gone;
grow grew grown; hang hung; have had; hear heard; hide hid hidden; hit hit; hold held; hurt hurt;
keep kept; know knew known; lead led; learn learnt; leave left; lend lent; lie lay lain; light lit;
lose lost; make made; mean meant; meet met; pay paid; put put; quit quit; read read; ride rode ridden;
ring rang rung; rise rose risen; run ran run; say said; see saw seen; sell sold; send sent; set set;
sew sewed sewn; shoot shot; show showed shown; shut shut; sing sang sung; sit sat; sleep slept;
speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck;
swim swam swum; take took taken; teach taught; tear tore torn; tell told; think thought;
throw threw thrown; understand understood; wake woke woken; wear wore worn; win won;
write wrote written; withdraw withdrew withdrawn; undergo underwent undergone; rebuild rebuilt;
overcome overcame overcome; knit knit; bet bet; split split; spread spread; hike hiked
"""
_REGULAR = """
accept achieve act add admire agree adopt adore advise aim allow answer apply appreciate arrange arrive ask
attend avoid bake balance believe belong bike book bowl brew call camp care carry celebrate change check
cherish clean climb close coach code collect combine compete complete connect consider contact continue
contribute cook coordinate count cover crave create cycle dance decide decorate dedicate deliver depend
deploy design develop discover discuss dislike donate download drop earn edit embrace encourage end enjoy
enroll enter establish exercise expand expect experience explain explore express face fail find finish
fish fix focus follow found garden gather graduate handle happen hate help hike hire hope host
identify imagine implement improve include incorporate inspire install intend interview introduce invest
invite join jog juggle jump kayak lack land launch lift like listen live look love maintain manage
marry meditate mention mentor migrate miss motivate move name need notice offer open opt order organise
organize own pack paint participate pass perform persuade pick plan plant play post practice practise
prefer prepare present prioritise prioritize produce promote propose publish pull push raise reach receive
recommend record refer register rehearse relate relax release rely remember rent renovate repair replace
research reserve rest retire return review sail save schedule score serve share shop sign skate sketch ski
smile smoke snowboard speak specialise specialize sponsor start stay stop stream stretch struggle study
submit suffer suggest support surf switch talk tend test thank tour track train transfer travel treat try
turn upgrade use vacation value visit volunteer wait walk want wash watch wish wonder work worry worship yearn settle commit select inherit relocate divorce negotiate avoid date
"""

_PAST: dict[str, str] = {}
_PARTICIPLES: dict[str, str] = {}
for _line in _IRREGULAR.replace("\n", " ").split(";"):
    _base, _past, *_more = _line.split()
    _PAST[_past] = _base
    _PARTICIPLES[_more[0] if _more else _past] = _base
_PARTICIPLES["got"] = "get"
BASES = frozenset(_REGULAR.split()) | frozenset(_PAST.values())
_BOTH = word_set(
    """
    put set hit cut cost quit read hurt split spread knit bet shut
    """
)
_NOT_PAST = word_set(
    """
    need feed heed speed bleed breed succeed proceed exceed embed shed seed
    """
)
_THIRD = MappingProxyType({"be": "is", "have": "has", "do": "does", "go": "goes"})
_VOWELS = frozenset("aeiou")


def past_base(word: str) -> str | None:
    """Return the base of a past form in small letters, None for any other word."""
    if word in _BOTH:
        return word
    return _PAST.get(word) or _regular_base(word)


def participle_base(word: str) -> str | None:
    """Return the base of a past participle, None for any other word."""
    return _PARTICIPLES.get(word) or _regular_base(word)


def gerund_base(word: str) -> str | None:
    """Return the base of a form in -ing that is known, None for any other word."""
    if not word.endswith("ing") or len(word) < 5:
        return None
    stem = word[:-3]
    for base in (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem):
        if base in BASES:
            return base
    return {"lying": "lie", "dying": "die", "being": "be"}.get(word)


def third_form(base: str) -> str:
    """Return the form after he or she: works, carries, has."""
    if base in _THIRD:
        return _THIRD[base]
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def _regular_base(word: str) -> str | None:
    if not word.endswith("ed") or word in _NOT_PAST or len(word) < 4:
        return None
    stem = word[:-2]
    if word.endswith("ied"):
        return stem[:-1] + "y"
    for base in (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem):
        if base in BASES:
            return base
    return stem
