"""TeX commands and the Unicode that stands for them. How commands are read is `tex`'s business.

Code points are those of The Unicode Standard 16.0, names those of LaTeX and amsmath.
"""

_SYMBOL_PAIRS = """
alpha=α beta=β gamma=γ delta=δ epsilon=ϵ varepsilon=ε zeta=ζ eta=η theta=θ vartheta=ϑ iota=ι
kappa=κ lambda=λ mu=μ nu=ν xi=ξ pi=π varpi=ϖ rho=ρ varrho=ϱ sigma=σ varsigma=ς tau=τ upsilon=υ
phi=ϕ varphi=φ chi=χ psi=ψ omega=ω Gamma=Γ Delta=Δ Theta=Θ Lambda=Λ Xi=Ξ Pi=Π Sigma=Σ Upsilon=Υ
Phi=Φ Psi=Ψ Omega=Ω
times=× cdot=· div=÷ pm=± mp=∓ ast=∗ star=⋆ circ=∘ bullet=• oplus=⊕ otimes=⊗ odot=⊙ wedge=∧
land=∧ vee=∨ lor=∨ cap=∩ cup=∪ setminus=∖ neg=¬ lnot=¬ dagger=† sqcup=⊔ sqcap=⊓
leq=≤ le=≤ geq=≥ ge=≥ neq=≠ ne=≠ approx=≈ equiv=≡ sim=∼ simeq=≃ cong=≅ propto=∝ ll=≪ gg=≫
prec=≺ succ=≻ in=∈ notin=∉ ni=∋ subset=⊂ supset=⊃ subseteq=⊆ supseteq=⊇ perp=⊥ parallel=∥ mid=∣
models=⊨ vdash=⊢ asymp=≍ doteq=≐ triangleq=≜ coloneqq=≔
to=→ rightarrow=→ leftarrow=← leftrightarrow=↔ Rightarrow=⇒ Leftarrow=⇐ Leftrightarrow=⇔ implies=⟹
iff=⟺ mapsto=↦ uparrow=↑ downarrow=↓ longrightarrow=⟶ Longrightarrow=⟹ hookrightarrow=↪ gets=←
rightharpoonup=⇀ rightleftharpoons=⇌ nearrow=↗ searrow=↘
sum=∑ prod=∏ coprod=∐ int=∫ iint=∬ iiint=∭ oint=∮ bigcup=⋃ bigcap=⋂ bigoplus=⨁ bigotimes=⨂
infty=∞ partial=∂ nabla=∇ forall=∀ exists=∃ nexists=∄ emptyset=∅ varnothing=∅ hbar=ℏ ell=ℓ Re=ℜ
Im=ℑ aleph=ℵ wp=℘ angle=∠ triangle=△ square=□ Box=□ top=⊤ bot=⊥ therefore=∴ because=∵ prime=′
degree=° surd=√ checkmark=✓ qed=∎ blacksquare=■
ldots=… cdots=⋯ dots=… vdots=⋮ ddots=⋱ lvert=| rvert=| vert=| Vert=‖ lVert=‖ rVert=‖
langle=⟨ rangle=⟩ lfloor=⌊ rfloor=⌋ lceil=⌈ rceil=⌉ lbrace={ rbrace=} backslash=\\ colon=:
"""
SYMBOLS = dict(pair.split("=", 1) for pair in _SYMBOL_PAIRS.split())
_WORD_LIST = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim liminf limsup max "
    "min sup inf det dim ker hom gcd lcm deg arg Pr mod"
)
WORDS = frozenset(_WORD_LIST.split())
SPACES = {"quad": "\u2003", "qquad": "\u2003\u2003", ",": "\u2009", ":": "\u2005", ";": "\u2005",
          " ": " ", "!": "", "enspace": "\u2002", "thinspace": "\u2009"}  # fmt: skip
ACCENTS = {"hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305",
           "vec": "\u20d7", "dot": "\u0307", "ddot": "\u0308", "tilde": "\u0303",
           "widetilde": "\u0303", "underline": "\u0332"}  # fmt: skip
UPRIGHT = frozenset(
    {"text", "mathrm", "operatorname", "textbf", "textit", "mbox", "texttt", "textrm"}
)
PLAIN_GROUPS = frozenset(
    {"mathbf", "boldsymbol", "bm", "mathit", "mathsf", "mathtt", "boxed", "tag"}
)
_IGNORED_LIST = (
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr displaystyle textstyle limits "
    "nolimits nonumber middle scriptstyle"
)
IGNORED = frozenset(_IGNORED_LIST.split())
SUPERSCRIPTS = dict(zip("0123456789+-=()nijTabcdefghklmoprstuvwxyz*′",
                        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱʲᵀᵃᵇᶜᵈᵉᶠᵍʰᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ*′", strict=True))  # fmt: skip
SUBSCRIPTS = dict(zip("0123456789+-=()aehijklmnoprstuvx",
                      "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))  # fmt: skip
_DOUBLE_STRUCK = dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True))
_SCRIPT = dict(zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ", strict=True))


def double_struck(letter: str) -> str:
    """Return the blackboard-bold form of a letter or digit; others stay as they are."""
    if letter in _DOUBLE_STRUCK:
        return _DOUBLE_STRUCK[letter]
    return _shifted(letter, capital=0x1D538, small=0x1D552, digit=0x1D7D8)


def script(letter: str) -> str:
    """Return the script form of a letter; others stay as they are."""
    return _SCRIPT.get(letter) or _shifted(letter, capital=0x1D49C, small=0x1D4B6, digit=0)


def fraktur(letter: str) -> str:
    """Return the Fraktur form of a letter; others stay as they are."""
    known = {"C": "ℭ", "H": "ℌ", "I": "ℑ", "R": "ℜ", "Z": "ℨ"}
    return known.get(letter) or _shifted(letter, capital=0x1D504, small=0x1D51E, digit=0)


def _shifted(letter: str, *, capital: int, small: int, digit: int) -> str:
    if "A" <= letter <= "Z":
        return chr(capital + ord(letter) - ord("A"))
    if "a" <= letter <= "z":
        return chr(small + ord(letter) - ord("a"))
    if "0" <= letter <= "9" and digit:
        return chr(digit + ord(letter) - ord("0"))
    return letter
