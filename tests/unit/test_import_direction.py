"""Imports point one way: a module may import from its own layer and those before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tracker"

# From the kernel to the user; a name is a module or a whole package below tracker.
LAYERS = (
    (
        "__init__",
        "model",
        "errors",
        "clock",
        "address",
        "atomic",
        "lock",
        "log",
        "nodeip",
        "notify",
        "printable",
        "signals",
        "sink",
    ),
    ("capture", "engine"),
    ("policy", "clusternet", "profiles"),
    ("decision", "tables"),
    ("config", "configfile", "guidance", "resolve", "values"),
    ("remarks", "follower", "causes", "lastrun", "session", "memory"),
    ("stats", "node", "publish", "api"),
    ("daemon", "doctor", "features", "presence"),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# What sees less than its layer would allow.
ONLY = {"publish": {*LAYERS[0], "publish"}, "clusternet": {*LAYERS[0], "clusternet"}}

ENGINE_MODULE = "_engine"
IMPORTS_ENGINE_MODULE = {"capture", "engine"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The name that LAYERS knows this file by."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_parts(source: str) -> set[str]:
    """The parts of tracker that a source text imports anywhere, at module level or inside."""
    parts = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            if top == "tracker":
                parts.add(rest.partition(".")[0] or "__init__")
    return parts


def wrong_imports(part: str, parts: set[str]) -> list[str]:
    wrong = []
    for other in sorted(parts):
        if other == ENGINE_MODULE:
            allowed = part in IMPORTS_ENGINE_MODULE
        elif other not in RANK:
            # `from tracker import __version__` and the like.
            allowed = (PACKAGE / "__init__.py").exists() and not (
                (PACKAGE / other).exists() or (PACKAGE / f"{other}.py").exists()
            )
        else:
            allowed = RANK[other] <= RANK[part] and other in ONLY.get(part, RANK)
        if not allowed:
            wrong.append(other)
    return wrong


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_towards_the_kernel(path: Path) -> None:
    part = part_of(path)
    assert part in RANK, f"{part} has no layer: give it one in this file"
    assert wrong_imports(part, imported_parts(path.read_text())) == []


@pytest.mark.parametrize(
    ("part", "source", "wrong"),
    [
        ("capture", "from tracker.policy.table import compile", ["policy"]),
        ("engine", "def f():\n    from tracker import policy", ["policy"]),
        ("publish", "from tracker.session import Session", ["session"]),
        ("publish", "import tracker.config", ["config"]),
        ("publish", "from tracker.model import Decision", []),
        ("decision", "from tracker._engine import ffi", ["_engine"]),
        ("engine", "from tracker import _engine", []),
        ("cli", "from tracker import __version__, daemon", []),
    ],
)
def test_a_wrong_import_is_found(part: str, source: str, wrong: list[str]) -> None:
    assert wrong_imports(part, imported_parts(source)) == wrong
