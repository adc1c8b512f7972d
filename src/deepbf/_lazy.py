"""Names of a package that are looked up when first used, so that importing it stays light."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`: from a name to what it stands for in its home, a module of the package.

    A name that is its own home is that module.
    """

    def look_up(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(homes))}.")
        home = importlib.import_module(f"{package}.{homes[name]}")
        return home if homes[name] == name else getattr(home, name)

    return look_up
