"""Third-party parts: the Python packages and resources that come with the program, and their licenses."""

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

_RESOURCES = Path(__file__).resolve().parents[2] / "resources"
_PROGRAM = "commonplace"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FILE = re.compile(r"(?:licen[cs]e|copying|notice)[^/]*$", re.IGNORECASE)
_CLASSIFIER = "License :: OSI Approved :: "
_MOST_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class ThirdPartyPart:
    """A package or resource: `version` "" if it has none, `license` a name, `text` all of it if known."""

    name: str
    version: str
    license: str
    text: str


def program_version() -> str:
    """Return the version of the program, "" if it is not installed."""
    try:
        return distribution(_PROGRAM).version
    except PackageNotFoundError:
        return ""


def third_party_parts() -> list[ThirdPartyPart]:
    """Return all parts, packages first, by name; blocking, some 100 ms."""
    packages = sorted(_packages(_PROGRAM, set()), key=lambda each: each.name.casefold())
    files = sorted(_RESOURCES.rglob("LICENSE"))
    return [*packages, *(_resource(file) for file in files)]


def _packages(name: str, seen: set[str]) -> list[ThirdPartyPart]:
    """Return the installed packages that one requires, and those that they require."""
    try:
        required = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    parts = []
    for line in required:
        found = _NAME.match(line)
        key = found[0].casefold().replace("_", "-") if found else ""
        if not key or key in seen or "extra ==" in line:
            continue
        seen.add(key)
        try:
            package = distribution(key)
        except PackageNotFoundError:
            continue  # required on another system
        license_name = _license_name(package)
        parts.append(
            ThirdPartyPart(package.name, package.version, license_name, _license_text(package))
        )
        parts += _packages(key, seen)
    return parts


def _license_name(package: Distribution) -> str:
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    named = metadata["License"].strip().partition("\n")[0] if "License" in metadata else ""
    if 0 < len(named) <= _MOST_NAME_CHARS and named != "UNKNOWN":
        return named
    approved = [
        each.removeprefix(_CLASSIFIER)
        for each in metadata.get_all("Classifier") or []
        if each.startswith(_CLASSIFIER)
    ]
    return ", ".join(approved)


def _license_text(package: Distribution) -> str:
    """Return the texts of a package's license files, one after the other."""
    files = [each for each in package.files or [] if ".dist-info" in str(each)]
    texts = []
    for file in files:
        if _FILE.search(str(file)):
            try:
                texts.append(file.read_text(encoding="utf-8").strip())
            except (OSError, UnicodeDecodeError):
                continue
    return "\n\n".join(texts)


def _resource(file: Path) -> ThirdPartyPart:
    text = file.read_text(encoding="utf-8").strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return ThirdPartyPart(file.parent.name, "", first, text)
