"""The Java sources of this room, joined to the one compilation unit that Janino takes."""

from __future__ import annotations

import re
from importlib.resources import files

PACKAGE = "oreo.unit"
"""The package that the sources name; `compile_java` replaces it."""


def java_unit(*names: str, package: str | None = None) -> str:
    """One compilation unit of these classes, for example `java_unit("Json", "Reflect")`; `package` is whose `java/`."""
    imports: set[str] = set()
    bodies: list[str] = []
    for name in names:
        text = files(package or __package__ or "").joinpath("java", f"{name}.java").read_text(encoding="utf-8")
        imports.update(re.findall(r"^import .+;$", text, re.MULTILINE))
        bodies.append(re.sub(r"^(package|import) .+;$", "", text, flags=re.MULTILINE))
    return "\n".join([f"package {PACKAGE};", *sorted(imports), *bodies])
