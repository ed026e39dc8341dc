"""Which cases are played: those of this folder, or `--cases PATH`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.cases.behaviour", "tests.cases.behaviour_events")

from tests.cases.playing import ENGINES, FIELD  # noqa: E402


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
        metafunc.parametrize("given_case", _files(given) if given else [], ids=_name)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Other people's cases are played alone, ours without them."""
    given = config.getoption("--cases", None)
    here = Path(__file__).parent
    for item in list(items):
        if here not in item.path.parents:
            continue
        foreign = item.path.name == "test_given.py"
        if foreign != bool(given):
            items.remove(item)


def _files(given: str) -> list[Path]:
    path = Path(given)
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not found or not path.exists():
        raise pytest.UsageError(f"--cases {given}: no case files there")
    return found


def _name(path: Path) -> str:
    return path.stem
