"""The small words of each language: what a query leaves out, and what gives a text's language away.

Short on purpose: articles, pronouns, prepositions, conjunctions, auxiliaries, question words.
Names of months are not here, although "may" is also a verb: a question about May means May.
"""

from types import MappingProxyType

STOP_WORDS = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "english": """
                a about above after again against all am an and any are aren't as at be because been
                before being below between both but by can can't could couldn't did didn't do does
                doesn't doing don't down during each few for from further had hadn't has hasn't have
                haven't having he her here hers herself him himself his how i i'd i'll i'm i've if
                in into is isn't it it's its itself just me might more most must my myself no nor
                not now of off on once only or other our ours ourselves out over own same shall she
                should shouldn't so some such than that that's the their theirs them themselves then
                there these they they're this those through to too under until up us very was wasn't
                we we're were weren't what what's when where which while who whom whose why will
                with won't would wouldn't you you're your yours yourself yourselves""",
            "german": """
                aber alle allem allen aller alles als also am an ander andere anderen auch auf aus
                bei beim bin bis bist da damit dann das dass dein deine dem den denn der des dich
                die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
                einen einer eines er es etwas euch euer für gegen gibt hab habe haben hat hatte
                hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja
                jede jeden jeder jedes kann kein keine können könnte man mein meine meinem meinen
                meiner mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr sein seine
                seinem seinen seiner sich sie sind so soll sollte sondern über um und uns unser
                unsere unter viel vom von vor war waren warum was weil welche welchem welchen
                welcher welches wenn wer werde werden wie wieder will wir wird wirst wo wurde wurden
                zu zum zur zwischen""",
            "french": """
                a ai alors après as au aucun aussi autre aux avait avec avez avoir avons c'est ça ce
                cela celle celui ces cet cette ceux chez comme comment d'un d'une dans de des depuis
                donc dont du elle elles en encore entre es est est-ce et étaient était été être eu
                fait il ils j'ai je jusqu l'on la le les leur leurs lui ma mais me même mes moi mon
                n'est ne nos notre nous on ont ou où par pas pendant peu peut plus pour pourquoi
                qu'il quand que quel quelle quelles quels qui quoi sa sans se sera ses si son sont
                sous suis sur ta te tes toi ton tous tout toute toutes très tu un une vers vos votre
                vous y""",
            "spanish": """
                a al algo algunas algunos ante antes aquel aquella como con contra cómo cual cuál
                cuando cuándo cuántos de del desde donde dónde durante e el él ella ellas ellos en
                entre era eran eres es esa esas ese eso esos esta está estaba estado están estar
                estas este esto estos estoy fue fueron ha había han has hasta hay he la las le les
                lo los más me mi mí mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra
                otro para pero poco por porque qué que quien quién se sea ser si sí sido sin sobre
                son soy su sus también te tengo tiene tienen todo todos tu tú tus un una uno unos
                usted vosotros y ya yo""",
            "italian": """
                a abbiamo ad agli ai al alla alle allo anche ancora avere aveva c'è che chi ci coi
                col come con così cosa cui da dagli dai dal dalla dalle de degli dei del della delle
                dello di dove e è ed era erano essere fa fra gli ha hai hanno ho i il in io l'ha la
                le lei li lo loro lui ma mi mia mie miei mio molto ne nei nel nella nelle no noi non
                nostra nostro o ogni per perché più poi qual quale quali quando quanto quella quelle
                quelli quello questa queste questi questo qui se sei senza si sia siamo solo sono
                sta stato su sua sue sui sul sulla suo suoi te ti tra tu tua tuo tutti tutto un una
                uno vi voi""",
            "portuguese": """
                a à ao aos aquela aquele as às até com como da das de dela dele depois do dos e é
                ela elas ele eles em entre era eram essa esse esta está estão estava este estes
                estou eu foi foram fosse há isso isto já lhe mais mas me mesmo meu meus minha muito
                na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo
                pelos por porque qual quais quando que quem são se seja sem ser será seu seus só sua
                suas também te tem têm tenho ter teu tinha todos tu tua um uma umas uns você vocês
                vou""",
            "dutch": """
                aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen
                door dus een en er ge geen had haar hebben heb heeft hem het hier hij hoe hun iets
                ik in is ja je jij jouw kan kon kunnen maar me meer men met mij mijn moet na naar
                niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u
                uit uw van veel voor waar waarom wanneer want waren was wat we weer welke werd wie
                wij wil worden wordt zal ze zich zij zijn zo zonder zou""",
            "swedish": """
                alla allt att av blev bli blir de dem den denna deras dess det detta dig din ditt
                du där efter ej eller en er ett från för ha hade han hans har henne hennes hon honom
                hur här i icke ingen inom inte jag ju kan kunde man med mellan men mig min mitt
                mycket ni nu när någon något några och om oss på sedan sig sin sina själv skulle så
                sådan till under upp ut utan vad var vara varför varit vem vi vid vilka vilken
                vilket är över""",
            "norwegian": """
                alle at av ble bli blir da de deg dem den denne der dere det dette din ditt du eller
                en er et etter for fordi fra før ha hadde han hans har hennes her hun hva hvem hvor
                hvordan hvorfor i ikke ingen jeg kan kunne man med meg mellom men min mitt mot mye
                noe noen nå når og også om opp oss over på samme seg selv siden sin skal skulle slik
                som så til um under uten var ved vi vil ville være vært""",
            "danish": """
                af alle alt at blev blive bliver da de dem den denne der deres det dette dig din dog
                du efter eller en end er et for fordi fra ham han hans har havde hende hendes her
                hos hun hvad hvem hvis hvor hvordan hvorfor i ikke ind jeg jer jo kan kunne man
                mange med meget men mig min mod mit ned noget nogle nu når og også om op os over på
                selv sig sin skal skulle som sådan thi til ud under var vi vil ville være været""",
            "finnish": """
                ei eivät eli emme en ennen että he heidän hän hänen ilman ja joka jos jossa josta
                jotka jotta juuri kaikki kanssa kautta koska kuin kuinka kuka kun kuten me meidän
                mikä mikäli miksi minkä minulla minun minä missä mistä mitä mukaan mutta myös niin
                niitä noin nyt näin oli olimme olin olisi olit olivat olla ole olen olet on onko
                ovat se sekä sen siitä sinun sinä sitten siinä tai te teidän tämä tämän tässä tätä
                vaan vai vaikka vain voi""",
            "polish": """
                a aby albo ale bardzo bez bo by być był była było były co czy dla do gdy gdzie go i
                ich ile im ja jak jako je jego jej jest jestem jeszcze jeśli już kiedy kto która
                które który których lub ma mam mi mnie może można mój my na nad nas nasz nie nich
                nim niż o od on ona one oni oraz po pod ponieważ przed przez przy są się sobie ta
                tak także tam te tego tej ten to tu ty tych tylko tym u w we wszystko z za ze że
                żeby""",
            "czech": """
                a aby ale ani až bez bude by byl byla byli bylo být co což či další do ho i já jak
                jako je jeho její jejich jen ještě ji jiné již jsem jsi jsme jsou jste k kam kde
                kdo kdy když ke která které který kteří ku má mám máte mě mezi mi mít mně mnou můj
                může my na nad nám nás náš ne nebo nebyl než nic o od on ona oni po pod podle pokud
                potom proč protože první před přes při s se si sice své svůj ta tak také tam tato te
                tedy ten tento tím to toho tohoto tom tomu toto tu tuto ty u už v vám vás ve více
                však všechno vy z za že""",
            "hungarian": """
                a abban ahhoz ahogy aki akkor ami amely amikor amit az azért azok azon azt be csak
                de e ebben egy egyik előtt el én ennek erre ez ezek ezen ezért ezt fel ha hanem hogy
                hogyan hol igen ill is itt ki kell keresztül között le lehet lenne lesz lett maga
                majd már más meg mely mert mi miért mikor mint minden mit még miután mivel most nagy
                nagyon ne nekem neki nem nincs ő ők olyan onnan ott össze pedig rá s saját se sem
                sok szerint szinte tehát te ti több úgy új után utána vagy vagyok valami van vannak
                volna volt voltam voltak vissza viszont""",
            "romanian": """
                a acea această aceasta acest aceste acestui ai al ale am ar are as aș asta astfel
                atunci au avea că când care ce cel cele cine cu cum da dacă dar de deci deja despre
                din după ea ei el ele era este eu fi fie fost i-a iar îmi în înainte își îți într
                între la le lor lui mai mă mea mei mele mi mine mult nici nimic noi noastră nostru
                nu o or ori pe pentru prin sa să sale sau se si și sunt său spre sub tale tău te tot
                toate tu un una unde unei unor unui va vă voi vor vostru""",
            "turkish": """
                acaba ama ancak aslında az bana bazı belki ben beni benim bile bir biri biz bize
                bizim bu buna bunda bunlar bunu bunun burada çok çünkü da daha de defa değil diye
                dolayı en gibi göre hâlâ hangi hem hep her hiç için ile ise kadar ki kim kime mi mı
                mu mü nasıl ne neden nerede nereye niçin niye o olan olarak oldu olduğu olduğunu
                olsa on ona onlar onu onun oysa sana sanki sen senin siz şey şimdi şu şöyle tüm var
                ve veya ya yani yok""",
            "catalan": """
                a això al als amb aquell aquella aquest aquesta com d'un d'una de del dels des en
                els el ella ells és era eren es està estan ha han havia he hi i jo la les li ho
                l'any més molt meu meva mi ni no nosaltres o on per perquè però quan què que qui
                quin quina s'ha se sense ser sí sobre són sóc també tan tot tots un una uns va vaig
                van vosaltres""",
            "indonesian": """
                ada adalah agar akan aku anda apa apakah atau bagaimana bahwa banyak beberapa belum
                bisa boleh bukan dalam dan dapat dari dengan di dia hanya harus hingga ia ini itu
                jadi jika juga kami kamu kapan karena ke kepada kita lagi lain lebih maka masih
                mengapa mereka mungkin namun oleh pada para pernah saat saja sampai sangat saya
                sebagai sebuah sedang sekarang semua seperti serta siapa sudah tapi telah tentang
                terhadap tersebut tetapi tidak untuk yang""",
            "russian": """
                а без более бы был была были было быть в вам вас ведь весь во вот все всего всех вы
                где да даже для до его ее её если есть еще ещё же за здесь и из или им их к как
                какая какие какой когда кого кто ли либо мне много может можно мой моя мы на над
                надо нам нас не него нее ней нет ни них но ну о об однако он она они оно от очень
                по под после потому почему при про с сам свое себя сейчас со так также такой там те
                тебя тем то тоже только том ты у уже чего чем что чтобы эта эти это этого этой этом
                этот я""",
            "greek": """
                αλλά αν αντί από αυτά αυτές αυτή αυτό αυτός αυτών για γιατί δε δεν εγώ είμαι είναι
                είχα είχε εμείς ένα ένας εσύ έχει έχω ή ήταν θα και κάθε κατά κι μα με μέσα μετά μη
                μην μια μου μας να ο οι όμως όπως όπου όσο όταν ότι πιο ποια ποιο ποιος πολύ που πού
                πριν προς πως πώς σαν σας σε στα στη στην στις στο στον στους συ σου τα τη την της
                τι τις το τον του τους τότε των ως""",
            "arabic": """
                أن أنا أنت أنه أو أي أين إذا إلا إلى إن إنه التي الذي الذين الى ان او بعد بل بين
                تلك ثم حتى حول حيث دون ذلك سوف عليه على عن عند عندما غير فقط في فيه فيها قبل قد كان
                كانت كل كما كم كيف لا لدي لكن لم لماذا لن له لها لهذا ليس ما ماذا متى مثل مع من منذ
                منه نحن هؤلاء هذا هذه هل هناك هو هي و ولا وهو يا يكون""",
            "hindi": """
                अगर अपना अपनी अपने अब आप इस इसका इसकी इसके इसे उन उनका उनकी उनके उन्हें उस उसका उसकी
                उसके उसे एक एवं ऐसा और कब कर करता करते करना करने कहाँ का किया किस किसी की कुछ के को
                कोई कौन क्या क्यों गया जब जहाँ जा जैसे जो तक तब तो था थी थे द्वारा न नहीं ने पर फिर
                बहुत भी मुझे में मेरा मेरी मेरे मैं यदि यह यहाँ या ये रहा रही रहे लिए वह वे सकता सभी
                साथ से हम ही हुआ हुई हुए है हैं हो होता होती होते""",
        }.items()
    }
)
