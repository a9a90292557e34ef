"""Words that carry grammar rather than content, for telling what a text is about.

Short lists for the languages most written; in another language frequency alone must do. They are
matched whole and casefolded. How text becomes words is `app.providers.extractive_text`.
"""

_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before
being below between both but by can can't cannot could couldn't did didn't do does doesn't doing
don't done down during each either else ever every few for from further get gets getting go goes
going gonna got had hadn't has hasn't have haven't having he he's her here here's hers herself him
himself his how how's however i i'd i'll i'm i've if in instead into is isn't it it'll it's its
itself just let let's like make makes making many may maybe me might mine more most much must my
myself need needs neither no nor not now of off oh ok okay on once one only onto or other our ours
out over own per please quite rather really same shall she she's should shouldn't since so some
something still such sure than thank thanks that that's the their theirs them then there there's
these they they'd they'll they're they've thing things this those though through thus to too
toward under until up upon us use used using very want wants was wasn't way we we'd we'll we're
we've well were weren't what what's when when's where where's whether which while who who's whom
whose why will with within without won't would wouldn't yeah yes yet you you'd you'll you're you've
your yours yourself able always another around back come could've day days e.g else even everything
first good great hello help hey hi i.e know last lot made new next nice okay put say says see seem
set show sounds still sure take tell think time today try two usually wow
"""
_GERMAN = """
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis
bist bitte da dabei damit dann danke das dass daß dein deine dem den denn der des dich die dies diese
diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch
euer für gegen geht gibt gut hab habe haben hallo hast hat hatte hier hinter ich ihm ihn ihnen ihr
ihre im immer in ins ist ja jede jeder jedes jetzt kann kannst kein keine können könnte mach machen
man mehr mein meine meinem meinen meiner mich mir mit mittels muss müssen nach nein nicht nichts noch
nun nur ob oder ohne schon sehr sein seine selbst sich sie sind so soll sollte sondern über um und uns
unser unter viel vom von vor wann war waren warum was weil welche welchen welcher welches wenn wer
werde werden wie wieder will wir wird wirst wo wollen wurde würde zu zum zur zwischen
"""
_FRENCH = """
ai au aussi autre autres aux avec avez avoir bien bonjour c'est ce cela ces cet cette chaque comme
comment dans de des donc dont du elle elles en encore entre est et être eu faire fait faut il ils j'ai
je l la le les leur leurs lui ma mais me merci mes moi moins mon ne nos notre nous on ont ou où par
parce pas peu peut peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi sa sans
se ses si son sont sous sur ta te tes toi ton tous tout toute toutes très tu un une va vos votre vous
"""
_SPANISH = """
al algo ante antes aquí así aunque bien cada como cómo con cual cuál cuando cuándo de del desde donde
dónde dos el él ella ellas ellos en entre era eres es esa ese eso esta está están este esto estos estoy
gracias ha hacer hasta hay hola la las le les lo los más me mi mis mucho muy nada ni no nos nosotros o
otra otro para pero poco por porque puede puedo pues qué que quien quién quiero se ser si sí sido sin
sobre solo son soy su sus también te tener tengo ti tiene todo todos tu tus un una unas uno unos usted
y ya yo
"""
_ITALIAN = """
ad agli ai al alla alle allo anche ancora avere che chi ci ciao col come con cosa cosi così cui da dal
dalla delle dei del della dello di dove due e ed era essere fare fra gli grazie ha hai hanno ho i il in
io la le lei li lo loro lui ma me mi mia mie miei mio molto nei nel nella no noi non nostro o ogni per
perché però più poi può qual quale quando quanto quella quello questa questo qui sai se sei senza si sì
sono sta su sua sue sul sulla suo suoi te ti tra tu tua tuo tutti tutto un una uno vi voi vorrei
"""
_PORTUGUESE = """
ao aos aquela aquele as até com como da das de dela dele do dos e é ela elas ele eles em entre era essa
esse está estão este eu foi fazer há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem
no nos nós num numa o obrigado olá onde os ou para pela pelo pode por porque posso qual quando que quem
quero se sem ser seu seus só são sobre sua suas também te tem tenho ter todo todos um uma umas uns você
vocês
"""
_DUTCH = """
aan al alle als andere ben bij dan dank dat de deze die dit doen door dus een en er ga geen graag had
hallo heb hebben heeft hem het hier hij hoe hun ik in is ja je jij jou jouw kan kun kunnen maar me meer
met mij mijn moet na naar nee niet nog nu of om omdat ons onze ook op over te toch tot uit u uw van veel
voor waar waarom was wat we wel welke werd wie wij wil wilt worden wordt zal ze zich zij zijn zo zonder
zou
"""
_RUSSIAN = """
а без бы был была были было быть в вам вас весь во вот все всё всех вы где да даже для до его ее её если
есть еще ещё же за здесь и из или им их к как какая какие какой когда кто ли меня мне мной можно мой моя
мы на надо нам нас не него нее неё нет ни них но ну о об он она они оно от очень по под пожалуйста потом
потому почему при привет про с сам свой себя сейчас со спасибо так также там тебе тебя то тоже только том
ты у уже хочу чем через что чтобы чтоб эта эти это этого этой этот я
"""

FUNCTION_WORDS = frozenset(
    word
    for language in (
        _ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _RUSSIAN,
    )
    for word in language.split()
)  # fmt: skip

# Chinese characters and Japanese signs that join words; a bigram with one of them says little.
FUNCTION_SIGNS = frozenset(
    "的了是在我你他她它们這这那有和就不也都很吗嗎呢吧啊个個与與及或把被让讓对對从從到"
)

# Frequent in chats of every kind, so they set no conversation apart.
COMMON_WORDS = frozenset(
    """
    add added adding allow allows answer ask based begin best better big build building call change
    changes check choose code common consider considering contains content correct cover create
    created creating current currently detail details different directly easily effective effectively
    ensure ensuring error example examples existing experience explain feel feeling file files find
    fine fix focus follow following function future give given goal great handle happy helpful helps
    hope idea ideas implement important improve include includes including increase information issue
    job keep key kind kinda learn life line list little long look looking main manage matter mean
    means meeting month months name number offer open option options order overall part particular
    people person personal place plan planning point possible potential prepare probably problem
    process project proper provide provides providing question questions read ready reason recommend
    regular remember require required result results return review right role run running save
    section seems sense share simple situation small solution specific start started starting step
    steps strong stuck suggest support system task tasks team test testing text times together tool
    tools trouble true trying type types understand understanding update updated user users value
    values various version view week weeks wondering word words work worked working works worried
    worry write writing written wrong year years
    """.split()  # noqa: SIM905
)
