"""Cases of language analysis by table: sentences, words and questions with what is made of them."""

import tomllib
from pathlib import Path
from typing import Any

_FILE = Path(__file__).resolve().parents[1] / "data/language.toml"
CASES: dict[str, list[Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
