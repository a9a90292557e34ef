"""Formulas: what can be typeset, how large and where it stands, and how long hostile input takes."""

import pytest
from PySide6.QtGui import QColor, QFontMetrics, QImage, QTextCursor

from tests.fakes.drawn import THEME, blocks, compose
from ui.rendering.document import fragments_of
from ui.rendering.formulas import MAX_CHARS, Formula, Typesetter, draw, image_format, typeset

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.mark.parametrize(
    "source",
    [
        r"e^{i\pi} + 1 = 0",
        r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}",
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1} = \frac{1}{ad-bc}\begin{pmatrix} d \end{pmatrix}_2^T",
        r"f(x) = \begin{cases} x^2 & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\begin{aligned} a &= b + c \\ &= d \end{aligned}",
        r"\begin{align} a &= b \nonumber \\ &= c \label{eq} \end{align}",
        r"\operatorname{softmax}(z)_i = \frac{e^{z_i}}{\sum_{j=1}^K e^{z_j}} \tag{3}",
        r"\underbrace{a + b}_{n} \xrightarrow{f} \mathbb{R}^n, \mathcal{L}, \boldsymbol{\beta}",
        r"\left.\frac{d}{dx}\right|_{x=0} \lVert x \rVert_2 < \langle\psi|\phi\rangle",
    ],
)
def test_what_models_write_is_typeset(source: str) -> None:
    assert typeset(source, is_display=True) is not None


@pytest.mark.parametrize(
    "source",
    ["", " ", r"\frac{a", "x^", "}{", r"\foo{x}", r"\ce{H2O}", "x_a_b", r"\left(", "a & b",
     r"\text{价格}", "x" * (MAX_CHARS + 1), "{" * 40 + "x" + "}" * 40, r"\frac{1}{1+" * 12 + "x" + "}" * 12,
     r"\begin{cases}" * 8 + "x" + r"\end{cases}" * 8, "a+" * 999, r"\def\a{\a\a}\a", r"\rule{9em}{9em}",
     r'\color{"><image href="file:///etc/passwd"/>}x', "x\x00", "\ud800"],
)  # fmt: skip
@pytest.mark.unmeasured
def test_what_is_wrong_unknown_or_too_long_is_not_and_nothing_is_raised(source: str) -> None:
    formula = typeset(source, is_display=False)
    assert formula is None or "image" not in formula.svg


def test_displayed_formulas_are_larger_than_those_in_a_line() -> None:
    inline, display = (typeset(r"\frac{a}{b}", is_display=each) for each in (False, True))
    assert display.ascent > 1.3 * inline.ascent


@pytest.mark.parametrize("em_px", [10.0, 15.0, 30.0, 45.0])
def test_a_formula_stands_on_the_baseline(em_px: float) -> None:
    for source in ("x", "y", r"\frac{a}{b}", r"\int_0^1", r"x'"):
        formula = typeset(source, is_display=True)
        assert formula is not None
        made = image_format(formula, "name", em_px, THEME.reading_font())
        descent = QFontMetrics(made.font()).descent()
        assert 0 <= descent - formula.descent * em_px < 2
        assert 0 <= made.height() - descent - formula.ascent * em_px < 1


def test_a_formula_is_drawn_in_the_color_of_its_text() -> None:
    formula = typeset("x", is_display=False)
    assert formula is not None
    image = draw(formula, 30, "#12ab34")
    dark = [color for color in _colors(image) if color.alpha() > 250]
    assert dark
    assert {color.name() for color in dark} == {"#12ab34"}


def _colors(image: QImage) -> list[QColor]:
    return [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]


def test_headings_have_larger_formulas_and_quotations_muted_ones() -> None:
    document = compose("# $x$\n\n$x$\n\n> $x$").document
    formats = [next(fragments_of(each)).charFormat().toImageFormat() for each in blocks(document)]
    assert formats[0].height() > formats[1].height() == formats[2].height()
    assert len({each.name() for each in formats}) == 3


def test_the_typesetter_keeps_all_but_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    typesetter = Typesetter()
    keys = [("x", False), ("x", True), (r"\foo", False)]
    assert typesetter.find(keys[0]) is None
    assert typesetter.prepare(keys, 60)
    assert [isinstance(typesetter.find(each), Formula) for each in keys] == [True, True, False]
    monkeypatch.setattr("ui.rendering.formulas._MAX_KEPT_BYTES", 4000)
    assert typesetter.prepare([("y", False)], 60)
    assert typesetter.find(keys[0]) is None
    assert typesetter.find(("y", False)) is not None


def test_a_text_waits_only_a_while_for_its_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Typesetter, "prepare", lambda *_: False)
    monkeypatch.setattr("ui.rendering.document_builder._MOST_WAIT_S", 1e-6)
    document = compose("before\n\n$\\zeta_{99}$").document
    assert document.toPlainText() == "before\n$\\zeta_{99}$"


def test_a_formula_under_the_cursor_has_its_source_as_tool_tip() -> None:
    cursor = QTextCursor(compose("$x<y$").document)
    cursor.movePosition(QTextCursor.MoveOperation.End)
    assert "x<y" in cursor.charFormat().toolTip()
