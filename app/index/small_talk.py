"""What asks for nothing: "ok", "thanks", "yes, go on". Recall looks for nothing then.

Told by what a message lacks: it is short and none of its words says what it is about, because they
are small words of some language, words of courtesy, or such as every other message here has.
"""

import re
from collections.abc import Mapping
from functools import cache

from app.index.analyser import surface_of
from app.index.stop_words import STOP_WORDS

_SHORT_WORDS = 8
_VERY_SHORT_WORDS = 3
_COMMON_SHARE = 0.02  # of the messages hold a word that tells nothing
_MANY_MESSAGES = 500  # only of many can be said what is common

COURTESIES = """
    ok okay okey k kk thanks thank thx ty cheers please pls yes yeah yep yup sure no nope nah hi hello hey
    hiya bye goodbye cya great good nice cool perfect awesome wonderful excellent amazing fine right
    exactly correct true indeed alright done continue go ahead proceed next more again sorry wow haha
    lol hmm hm ah oh uh well welcome morning evening night day much lot got it's that's makes sense
    sounds understood agreed absolutely definitely certainly maybe help helpful helped works worked
    danke bitte ja jo nein guten gute guter hallo moin servus tschüss gut super prima klasse genau richtig weiter stimmt
    alles klar verstanden gerne morgen abend tag schön vielen dank
    merci oui ouais non bonjour bonsoir salut coucou d'accord accord parfait bien très beaucoup suite
    continuer continue revoir voilà génial
    gracias sí si hola vale adiós bueno buenos buenas días tardes noches perfecto claro muchas sigue
    obrigado obrigada sim não olá oi tchau bom boa dia noite certo beleza valeu perfeito continua
    grazie ciao va bene buongiorno buonasera certo perfetto prego avanti capito
    dank je bedankt nee hoi dag goed prima graag ga door
    tack hej nej bra tak takk nei hei kiitos kyllä ei moi hyvä jep
    dzięki dziękuję tak nie cześć dobra dobrze proszę díky ano ahoj dobře děkuji prosím
    köszönöm igen nem szia jó mulțumesc da nu bună teşekkürler teşekkür ederim evet hayır merhaba tamam
    спасибо пожалуйста да нет привет здравствуйте хорошо ладно ок окей понятно ясно дальше отлично пока
    дякую так ні привіт добре ευχαριστώ ναι όχι γεια καλά
    شكرا نعم لا مرحبا حسنا تمام תודה כן לא שלום טוב धन्यवाद शुक्रिया हाँ नहीं नमस्ते ठीक है
    terima kasih ya tidak halo baik cảm ơn vâng không xin chào
    네 예 아니요 아니 감사합니다 고마워 고마워요 안녕 안녕하세요 알겠습니다 좋아요 계속
"""
_UNSPACED = """
    谢谢 謝謝 多谢 多謝 好的 好吧 是的 不是 你好 您好 继续 繼續 明白 了解 可以 没问题 沒問題 再见 再見 好 是 不 对 對
    嗯 行 ありがとう ありがとうございます はい いいえ うん こんにちは おはよう こんばんは わかりました 了解 了解です
    お願いします よろしく 続けて さようなら ขอบคุณ ครับ ค่ะ ใช่ ไม่ สวัสดี โอเค
"""
_HOW_ARE_YOU = re.compile(
    r"how(?: are|'re|’re) (?:you|things)(?: doing)?(?: today)?|how(?:'s|’s| is) it going|what(?:'s|’s) up"
    r"|wie geht(?:'s|’s|s| es) ?(?:dir|ihnen|euch)?(?: heute)?|comment (?:ça|ca) va|(?:ça|ca) va"
    r"|(?:qué|que) tal|como (?:estás|vai|está)|come (?:stai|va)|как (?:дела|ты)|jak się masz"
)
_SIGNS = " \t\r\n.,!?…~。、！？，．’'\"-–—:;)("


def is_small_talk(text: str, frequencies: Mapping[str, int], messages: int) -> bool:
    """Return whether `text` names nothing that could be recalled.

    `frequencies` says in how many of all `messages` each of its words occurs that counts.
    """
    bare = text.strip(_SIGNS).casefold()
    if bare in _unspaced():
        return True
    rest = _HOW_ARE_YOU.sub(" ", bare)
    words = [word for word in surface_of(rest) if any(map(str.isalnum, word))]
    if not words:
        return True
    if len(words) > _SHORT_WORDS:
        return False
    if all(word in _telling_nothing() for word in words):
        return True
    is_asking = text.rstrip().endswith(("?", "？"))
    if len(words) > _VERY_SHORT_WORDS or is_asking or messages < _MANY_MESSAGES:
        return False
    common = _COMMON_SHARE * messages
    return bool(frequencies) and all(count > common for count in frequencies.values())


@cache
def _telling_nothing() -> frozenset[str]:
    """Words of courtesy and small words of every language, as `surface_of` cuts them."""
    texts = [COURTESIES, *(" ".join(words) for words in STOP_WORDS.values())]
    return frozenset(word for text in texts for word in surface_of(text.casefold()))


@cache
def _unspaced() -> frozenset[str]:
    return frozenset(_UNSPACED.split())
