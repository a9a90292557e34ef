"""Formulas as readable Unicode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.rendering.tex import tex_to_runs


def tex_to_unicode(source: str) -> str:
    """Return a formula as one text, one row per line."""
    return "\n".join("".join(run.text for run in row) for row in tex_to_runs(source))


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        ("E = mc^2", "E = mc²"),
        (r"\frac{a}{b} \frac{a+b}{2} \frac 1{ 2}", "a/b (a+b)/2 1/2"),
        (r"\sqrt{x+1} \sqrt[3]{x} \sqrt[n]{x}", "√(x+1) ∛x ⁿ√x"),
        (r"x_{ij}^{2} e^{-x^2} a^{\beta}", "xᵢⱼ² e^(−x²) a^β"),
        (r"\alpha \leq \Omega", "α ≤ Ω"),
        (r"\sum_{i=1}^{n} x_i", "∑ᵢ₌₁ⁿ xᵢ"),
        (r"\int_0^1 f(x)\,dx", "∫₀¹ f(x)\u2009dx"),
        (r"\mathbb{R}^n \to \mathcal{LA}, \mathfrak{Ca}, \mathbb{A1}", "ℝⁿ → ℒ𝒜, ℭ𝔞, 𝔸𝟙"),
        (r"\left( \frac{n}{2} \right.", "( n/2"),
        (r"\text{if } x > 0", "if  x > 0"),
        (r"\hat{x} + \vec{v}", "x\u0302 + v\u20d7"),
        (r"f'(x) \not= 0 \not\subset y \not+", "f′(x) ≠ 0 ⊄ y +\u0338"),
        (r"90^\circ~C", "90°\u00a0C"),
        (r"\sin x + \log_2 n + \sin2", "sin x + log₂ n + sin\u20092"),
        (r"\binom{n}{k}", "C(n, k)"),
        (r"\overset{a}{b} \underset{a}{b} \mathbf{v}", "b^(a) b_(a) v"),
        (r"\{1, 2\}", "{1, 2}"),
        (r"\unknown{x}", r"\unknown x"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "( a b\nc d )"),
        (r"\begin{array}{cc} a \end{array} \begin{cases} b \end{cases}", "a { b"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b\nc = d"),
        ("x+" * 5000, "x+" * 5000),
    ],
)  # fmt: skip
def test_tex_is_readable(source: str, readable: str) -> None:
    assert tex_to_unicode(source) == readable


def test_variables_are_italic_and_functions_and_text_are_not() -> None:
    italic = {run.text: run.italic for run in tex_to_runs(r"\sin x \text{ or } 2")[0]}
    assert (italic["sin"], italic["x"], italic[" or "]) == (False, True, False)


@pytest.mark.parametrize("source", ["{" * 3000, r"\frac" * 700, "^" * 900, "}" * 50, "\\", "\\\\"])
def test_broken_tex_still_has_text(source: str) -> None:
    assert tex_to_unicode(source)


@given(st.text(alphabet="\\{}^_&~ abxfrcsqt123[]()+-=", max_size=80))
def test_any_tex_can_be_read(source: str) -> None:
    assert not set(tex_to_unicode(source)) & set("\x0e\x0f\x1e")
