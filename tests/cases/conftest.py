"""Which cases are played: those of this folder, or `--cases PATH`.

A file with a list of `cases` is about profiles, any other one is a situation to be played.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("tests.cases.behaviour", "tests.cases.behaviour_events")
pytest.register_assert_rewrite("tests.cases.behaviour_modes", "tests.cases.profile_checks")

# Behind the registration: an import that comes first escapes the rewriting.
from tests.cases.playing import ENGINES, FIELD, PROFILES  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", metavar="PATH", help="a case file or a folder of them, instead of our own"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", ENGINES)
    if "field_case" in metafunc.fixturenames:
        metafunc.parametrize("field_case", sorted(FIELD.glob("*.json")), ids=_name)
    if "given_case" in metafunc.fixturenames:
        given = metafunc.config.getoption("--cases", None)
        played = [path for path in _files(given) if not _profile_cases(path)] if given else []
        metafunc.parametrize("given_case", played, ids=_name)
    if "profile_case" in metafunc.fixturenames:
        given = metafunc.config.getoption("--cases", None)
        paths = _files(given) if given else [PROFILES / "conformance.json"]
        cases = [case for path in paths for case in _profile_cases(path)]
        metafunc.parametrize("profile_case", cases, ids=[case["id"] for case in cases])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Other people's cases are played alone, ours without them."""
    given = config.getoption("--cases", None)
    here = Path(__file__).parent
    for item in list(items):
        if here not in item.path.parents:
            continue
        if given and _is_for_given(item):
            continue
        if given or item.path.name == "test_given.py":
            items.remove(item)


def _is_for_given(item: pytest.Item) -> bool:
    """Whether it takes a case that was given; of a kind that is not among them none is left."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found = parameters.get("given_case"), parameters.get("profile_case")
    return any(isinstance(case, Path | dict) for case in found)


def _profile_cases(path: Path) -> list[dict[str, Any]]:
    """The cases of a file about profiles; [] = it is another kind of file, or none at all."""
    try:
        content = json.loads(path.read_text())
    except ValueError:
        return []
    cases = content.get("cases", []) if isinstance(content, dict) else []
    return list(cases)


def _files(given: str) -> list[Path]:
    path = Path(given)
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not found or not path.exists():
        raise pytest.UsageError(f"--cases {given}: no case files there")
    return found


def _name(path: Path) -> str:
    return path.stem
