"""Icons of the interface: copies the ones in use from the npm package `lucide-static`.

`npm pack lucide-static`, unpack it, then `python packaging/icons.py FOLDER NAME...` adds icons to
`resources/icons/lucide`. `python packaging/icons.py --colors` writes again those that style sheets
use, which need a file for each color, after the palette was changed; a test compares them.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ui.theme import DARK, LIGHT  # noqa: E402

ICONS = ROOT / "resources" / "icons" / "lucide"
THEMES = ROOT / "resources" / "themes"
OF_STYLE_SHEETS = {
    "chevron": ("chevron-down", "muted"),
    "chevron-up": ("chevron-up", "muted"),
    "chevron-right": ("chevron-right", "muted"),
    "check": ("check", "on_accent"),
    "check-plain": ("check", "text"),
    "minus": ("minus", "on_accent"),
    "dot": ("dot", "on_accent"),
}
_NOISE = re.compile(r"<!--.*?-->\s*|\s+class=\"[^\"]*\"", re.DOTALL)


def add(package: Path, names: list[str]) -> None:
    """Copy icons and their license from an unpacked package."""
    ICONS.mkdir(parents=True, exist_ok=True)
    (ICONS / "LICENSE").write_bytes((package / "LICENSE").read_bytes())
    for name in names:
        svg = (package / "icons" / f"{name}.svg").read_text(encoding="utf-8")
        small = re.sub(r"\s+", " ", _NOISE.sub("", svg)).replace("> <", "><").replace(" >", ">")
        (ICONS / f"{name}.svg").write_text(small.strip() + "\n", encoding="utf-8")


def colored() -> dict[str, str]:
    """Return the files of style sheets: name and SVG."""
    files = {}
    for target, (name, role) in OF_STYLE_SHEETS.items():
        svg = (ICONS / f"{name}.svg").read_text(encoding="utf-8")
        width = "5" if name == "dot" else "3" if name in ("check", "minus") else "2.25"
        svg = svg.replace('stroke-width="2"', f'stroke-width="{width}"')
        if target == "chevron":  # also a background, which has the size of its file
            svg = svg.replace('width="24" height="24"', 'width="14" height="14"')
        for shade, colors in (("light", LIGHT), ("dark", DARK)):
            files[f"{target}-{shade}.svg"] = svg.replace("currentColor", getattr(colors, role))
    return files


if __name__ == "__main__":
    if sys.argv[1:] != ["--colors"]:
        add(Path(sys.argv[1]), sys.argv[2:])
    for file, text in colored().items():
        (THEMES / file).write_text(text, encoding="utf-8")
