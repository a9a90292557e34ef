"""Mathematics as readable Unicode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.rendering.tex import tex_to_runs, tex_to_unicode


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        ("E = mc^2", "E = mc²"),
        (r"\frac{a}{b}", "a/b"),
        (r"\frac{a+b}{2}", "(a+b)/2"),
        (r"\frac12", "1/2"),
        (r"\sqrt{x+1}", "√(x+1)"),
        (r"\sqrt[3]{x}", "∛x"),
        (r"\sqrt[n]{x}", "ⁿ√x"),
        (r"x_{ij}^{2}", "xᵢⱼ²"),
        (r"e^{-x^2}", "e^(−x²)"),
        (r"\alpha \leq \Omega", "α ≤ Ω"),
        (r"\sum_{i=1}^{n} x_i", "∑ᵢ₌₁ⁿ xᵢ"),
        (r"\int_0^1 f(x)\,dx", "∫₀¹ f(x)\u2009dx"),
        (r"\mathbb{R}^n \to \mathcal{L}", "ℝⁿ → ℒ"),
        (r"\left( \frac{n}{2} \right)", "( n/2 )"),
        (r"\text{if } x > 0", "if  x > 0"),
        (r"\hat{x} + \vec{v}", "x\u0302 + v\u20d7"),
        (r"f'(x) \not= 0", "f′(x) ≠ 0"),
        (r"90^\circ", "90°"),
        (r"\sin x + \log_2 n", "sin x + log₂ n"),
        (r"\binom{n}{k}", "C(n, k)"),
        (r"a \cdot b \times c", "a · b × c"),
        (r"\{1, 2\}", "{1, 2}"),
        (r"\unknown{x}", r"\unknown x"),
    ],
)
def test_common_tex_reads_as_one_would_write_it(source: str, readable: str) -> None:
    assert " ".join(tex_to_unicode(source).split(" ")) == readable


def test_rows_stand_below_each_other() -> None:
    source = r"\begin{aligned} a &= b \\ c &= d \end{aligned}"
    assert tex_to_unicode(source) == "a = b\nc = d"


def test_variables_slant_and_functions_and_words_do_not() -> None:
    slants = {run.text: run.italic for run in tex_to_runs(r"\sin x \text{ or } 2")[0]}
    assert slants["sin"] is False
    assert slants["x"] is True
    assert slants[" or "] is False


@pytest.mark.parametrize("source", ["{" * 3000, r"\frac" * 700, "^" * 900, "}" * 50, "\\", "\\\\"])
def test_broken_tex_still_reads(source: str) -> None:
    assert tex_to_unicode(source)


def test_very_long_tex_stays_as_it_is() -> None:
    assert tex_to_unicode("x+" * 5000) == "x+" * 5000


@given(st.text(alphabet="\\{}^_&~ abxfrcsqt123[]()+-=", max_size=80))
def test_any_tex_can_be_read(source: str) -> None:
    text = tex_to_unicode(source)
    assert not set(text) & set("\x0e\x0f\x1e")
