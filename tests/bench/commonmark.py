"""The examples of CommonMark beside what the window makes of them; every deliberate difference is listed.

python -m tests.bench.commonmark commonmark.json

The file is `spec.json` of the specification, version 0.31.2; the source archive of markdown-it-py has it, too. It is not
part of this repository, since it has a license of its own (CC BY-SA 4.0). Left out of the comparison:
titles of links, which are not shown, how a target's characters are escaped, and white space.
"""

import html
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

from ui.rendering.definitions import Definitions
from ui.rendering.parser import _markdown, markdown_blocks, markdown_inline

DELIBERATE = {
    "HTML is text, and Markdown inside it is Markdown": (
        21, 148, 150, 151, 155, 156, 158, 159, 161, 162, 163, 164, 165, 166, 171, 177, 178,
        182, 186, 189, 344, 475, 476, 477, 524, 536, 631, 642, 643,
    ),
    r"\[ ... \] is a formula": (12,),
    "a definition is known before the end of its title": (197,),
    "a label of a definition is on one line": (541,),
}  # fmt: skip


def main(path: Path) -> int:
    """Print what differs and is not listed, and what is listed and does not differ."""
    differing = {each["example"] for each in json.loads(path.read_text()) if _differs(each)}
    listed = {number for numbers in DELIBERATE.values() for number in numbers}
    for words, numbers in (
        ("not listed", differing - listed), ("listed, but equal", listed - differing)
    ):  # fmt: skip
        sys.stdout.write(f"{words}: {sorted(numbers) or 'none'}\n")
    sys.stdout.write(f"{len(differing)} differ\n")
    return int(differing != listed)


def _differs(example: dict[str, str]) -> bool:
    markdown, definitions = _markdown(), Definitions()
    definitions.read(example["markdown"])
    tokens = markdown_inline(markdown_blocks(example["markdown"]), definitions)
    made = markdown.renderer.render(tokens, markdown.options, {})
    return _compared(str(made)) != _compared(example["html"])


def _compared(text: str) -> str:
    text = re.sub(r' title="[^"]*"', "", text)
    text = re.sub(
        r'(href|src)="([^"]*)"', lambda m: f'{m[1]}="{unquote(html.unescape(m[2]))}"', text
    )
    text = html.unescape(re.sub(r"</?p>", "", text))
    return re.sub(r">\s+<", "><", " ".join(text.split()))


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
