"""The words of a request: "please look up ... for me" says that something is wanted, not what.

A question's own words are those of what it asks about; "search" and "tell me" stand in few messages,
so that they would weigh more than the matter itself. What a request begins or ends with is known by
its place and by the kind of its words: courtesies, who may do it for whom, and a verb of looking or
telling in front of a small word of any language, as "search" is in "search for the sourdough" and is
not in "search engines compared". What was said is wanted then, so that verbs of saying name nothing.
"""

import re
from collections.abc import Sequence
from functools import cache

from app.index.small_talk import COURTESIES
from app.index.stop_words import STOP_WORDS

_MAY_YOU = """
    can could would will may might you i i'd i'm me us we want need like love to wish let let's just
    kindly hey now so and also trying
    kannst könntest könnten können würdest würden du sie ihr ich möchte will hätte gern mal doch
    peux peux-tu pouvez pouvez-vous pourrais pourrais-tu pourriez pourriez-vous tu vous je veux
    voudrais aimerais s'il te vous plaît plait svp
    puedes podrías puede podría quiero quisiera me por favor
    puoi potresti può vorrei voglio favore pode podes poderia quero queria gostaria de
    kun kunt je u wil graag alsjeblieft alstublieft kan du snälla vill jag vil jeg gerne
    możesz mógłbyś chcę chciałbym můžeš mohl bys chci lütfen bana misin mısın
    можешь можете мог могли бы ты вы я хочу хотел
"""
_VERBS = """
    search find look lookup locate know retrieve fetch recall remember remind tell show give list get bring
    pull dig check describe explain summarize summarise recap repeat quote
    such suche suchen sucht finde finden find zeig zeige zeigen sag sage sagen erzähl erzähle erzählen
    erinnere erinnern nenne nenn gib schau guck hol hole beschreibe erkläre wiederhole wissen
    cherche cherchez chercher trouve trouvez trouver montre montrez montrer dis dites dire parle
    parlez rappelle rappelez rappeler donne donnez raconte racontez retrouve retrouvez savoir
    cherche-moi trouve-moi montre-moi montrez-moi dis-moi dites-moi parle-moi parlez-moi rappelle-moi
    rappelez-moi donne-moi donnez-moi raconte-moi retrouve-moi
    busca buscar búscame encuentra encontrar muestra muéstrame mostrar di dime decir cuenta cuéntame
    recuerda recuérdame recordar háblame habla saber dame
    cerca cercami cercare trova trovami trovare mostra mostrami mostrare dimmi dire racconta
    raccontami ricorda ricordami ricordare parlami sapere dammi
    procura procure procurar encontre encontrar mostre mostra-me mostrar diga diga-me diz-me conte
    conta-me lembre lembra lembra-me fale fala-me saber
    zoek zoeken vind vinden toon laat vertel vertellen herinner weten geef
    sök söka hitta visa berätta påminn veta finn vis fortell minn søk find søg fortæl mind
    szukaj znajdź poszukaj pokaż powiedz opowiedz przypomnij hledej najdi najděte ukaž řekni pověz
    připomeň
    найди найдите найти ищи поищи покажи покажите расскажи расскажите скажи скажите напомни напомните
    узнать знать
"""
_SAYING = """
    said told mentioned wrote asked discussed talked spoke
    gesagt sagte erzählt erzählte geschrieben schrieb erwähnt besprochen gefragt
    dit raconté écrit mentionné demandé parlé dijo dije dicho contó conté escribió mencionó preguntó
    detto disse scritto raccontato chiesto menzionato disse dito falou contou escreveu perguntou
    zei gezegd verteld schreef geschreven sa sagt sade skrev berättade fortalte
    powiedział powiedziała mówił mówiła pisał pisała řekl řekla napsal napsala
    сказал сказала сказали говорил говорила писал писала рассказал рассказала
"""
_PARTICLES = """
    up for about again out over back through into at on in of everything anything something all all's
    nach mir mich uns bitte über von vom an noch mal einmal alles was's heraus raus
    moi nous à au de du des sur me nos de del sobre acerca di del dello della su mi ci
    op naar over mij ons om för efter mig oss om mi nam o dla mne mi мне нам о об про
"""
_ENDINGS = """
    please pls thanks thank you for me again bitte danke mir raus heraus nochmal s'il te vous plaît
    merci por favor gracias per favore grazie obrigado obrigada tack dzięki proszę prosím пожалуйста
    спасибо lütfen bul göster anlat söyle hatırlat 찾아줘 찾아주세요 알려줘 알려주세요 보여줘 검색해줘
    말해줘 बताओ बताइए दिखाओ खोजो
"""
_BEFORE = re.compile(
    r"(?:请|請|麻烦|麻煩)?(?:帮我|幫我|给我|給我)?(?:搜索|搜尋|搜一下|查找|查一下|找一下|找找|找|"
    r"告诉我|告訴我|提醒我|说说|說說|给我看)(?:关于|關於|有关|有關|一下)?"
)
_BEHIND = re.compile(
    r"(?:について|に関して|のこと)?を?(?:教えて|探して|検索して|見せて|思い出させて|調べて)"
    r"(?:ください|下さい|くれる|くれ|ほしい|ね|よ)*$"
)
_WORD = re.compile(r"[^\s,.;:!?¿¡…\"“”„«»()]+")
_ELIDED = re.compile(r"^(?:qu|[cdjlmnst])'(?=\w)")
_MARKS = " \t\r\n,.;:!¿¡…-–—"


def without_request(text: str) -> str:
    """Return `text` without the words that only ask for it; as it is where nothing else is left."""
    whole = text.strip()
    bare = _without_head(whole)
    if bare != whole:
        bare = _without_saying(bare)
    if bare != whole or not whole.endswith("?"):
        bare = " ".join(_without_ending(bare).split())
    return bare if any(map(_is_weighty, _WORD.findall(bare))) else text


def _without_head(text: str) -> str:
    if unspaced := _BEFORE.match(text):
        return text[unspaced.end() :].strip(_MARKS)
    words = list(_WORD.finditer(text))
    names = [match[0].casefold().replace("’", "'") for match in words]
    start = 0
    while start < len(names) and names[start] in _opening():
        start += 1
    if not _is_request(names[start:]):
        return text
    start += 1
    while start < len(names) and names[start] in _following() | _endings():
        start += 1
    return text[words[start].start() :] if start < len(words) else ""


def _without_saying(text: str) -> str:
    """Return a text without verbs of saying; without what leads to one, if that is small words alone."""
    words = _WORD.findall(text)
    kept = [word for word in words if word.casefold() not in _saying()]
    if len(kept) == len(words):
        return text
    first = next((at for at, word in enumerate(words) if word.casefold() in _saying()), 0)
    leads = 0 if any(map(_is_weighty, words[:first])) else first
    while leads < len(kept) and kept[leads].casefold() in _following():
        leads += 1
    return " ".join(kept[leads:])


def _is_request(names: Sequence[str]) -> bool:
    """Return whether words begin with a verb that asks for what comes after a small word."""
    if len(names) < 2 or names[0] not in _verbs():
        return False
    return "-" in names[0] or names[1] in _following() | _endings() | _small()


def _without_ending(text: str) -> str:
    if (unspaced := _BEHIND.search(text)) is not None:
        text = text[: unspaced.start()]
    words = list(_WORD.finditer(text))
    end = len(words)
    while end > 1 and words[end - 1][0].casefold() in _endings():
        end -= 1
    return text if end == len(words) else text[: words[end - 1].end()]


def _is_weighty(word: str) -> bool:
    name = _ELIDED.sub("", word.casefold().replace("’", "'"))
    return any(map(str.isalnum, name)) and name not in _small() | _endings() | _polite()


@cache
def _opening() -> frozenset[str]:
    return _polite().union(_MAY_YOU.split())


@cache
def _polite() -> frozenset[str]:
    return frozenset(COURTESIES.split())


@cache
def _verbs() -> frozenset[str]:
    return frozenset(_VERBS.split())


@cache
def _saying() -> frozenset[str]:
    return frozenset(_SAYING.split())


@cache
def _following() -> frozenset[str]:
    return frozenset(_PARTICLES.split())


@cache
def _endings() -> frozenset[str]:
    return frozenset(_ENDINGS.split())


@cache
def _small() -> frozenset[str]:
    return frozenset().union(*STOP_WORDS.values())
