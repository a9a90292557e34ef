"""Kinds of providers, one module with a `SPEC` each; the built-in model, model lists, local servers.

A new module with a `SPEC` adds a kind: there is no other list of them.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from app.providers.vendor import Vendor


@cache
def vendors() -> Mapping[str, Vendor]:
    """Return the kinds of providers by name, in the order of their positions."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    specs: list[Vendor] = [module.SPEC for module in modules if hasattr(module, "SPEC")]
    return {spec.kind: spec for spec in sorted(specs, key=lambda spec: spec.position)}
