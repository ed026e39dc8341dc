"""The table of features, and the one excuse that a test has."""

from __future__ import annotations

import pytest

from tests import features as excuse
from tracker import features
from tracker.features import Feature

CONFIG = features.parse_config(
    b'CONFIG_BPF=y\n# CONFIG_KPROBES is not set\nCONFIG_VETH=m\nCONFIG_LSM="bpf"\n\n'
)


def made(probe: str = "Invalid argument", since: str = "5.5", *config: str) -> Feature:
    return Feature("x", since, lambda: probe, "worse", config)


@pytest.mark.parametrize(
    ("since", "release", "proof"),
    [
        ("5.5", "5.4.0-150-generic", "kernel 5.4.0-150-generic is older than 5.5"),
        ("5.10", "5.9.1", "kernel 5.9.1 is older than 5.10"),
        ("5.5", "5.5.0", ""),
        ("5.5", "6.1.0-28-cloud-amd64", ""),
        ("", "3.10.0", ""),
    ],
)
def test_an_older_kernel_is_proof(since: str, release: str, proof: str) -> None:
    assert features.absence(made(since=since), release, CONFIG) == proof


@pytest.mark.parametrize(
    ("keys", "config", "proof"),
    [
        (("CONFIG_BPF", "CONFIG_VETH"), CONFIG, ""),
        (("CONFIG_BPF", "CONFIG_KPROBES"), CONFIG, "CONFIG_KPROBES"),
        (("CONFIG_NOT_KNOWN",), CONFIG, "CONFIG_NOT_KNOWN"),
        (("CONFIG_KPROBES",), {}, ""),
    ],
    ids=["built", "not-set", "not-there", "not-readable"],
)
def test_a_configuration_without_it_is_proof(
    keys: tuple[str, ...], config: dict[str, str], proof: str
) -> None:
    said = f"the kernel was configured without {proof}" if proof else ""
    assert features.absence(made("", "5.5", *keys), "6.1.0", config) == said


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> None:
    excuse._missing.cache_clear()
    monkeypatch.setattr(features, "kernel_config", lambda: CONFIG)


def use(monkeypatch: pytest.MonkeyPatch, feature: Feature) -> None:
    excuse._missing.cache_clear()
    monkeypatch.setattr(features, "FEATURES", (feature,))


@excuse.needs("fentry")
def needing(number: int) -> int:
    return number + 1


@pytest.mark.usefixtures("play")
def test_what_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, made("")._replace(name="fentry"))
    assert needing(1) == 2


@pytest.mark.usefixtures("play")
@pytest.mark.parametrize(
    "feature", [made(since="99.0"), made("refused", "5.5", "CONFIG_KPROBES")], ids=str
)
def test_a_proven_absence_skips(monkeypatch: pytest.MonkeyPatch, feature: Feature) -> None:
    use(monkeypatch, feature._replace(name="fentry"))
    with pytest.raises(pytest.skip.Exception, match="fentry: "):
        needing(1)


@pytest.mark.usefixtures("play")
def test_anything_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, made("Operation not permitted", "5.5", "CONFIG_BPF")._replace(name="fentry"))
    with pytest.raises(pytest.fail.Exception, match="fentry: Operation not permitted; nothing"):
        needing(1)


def test_a_test_cannot_need_what_is_not_in_the_table() -> None:
    with pytest.raises(KeyError):
        excuse.needs("teleport")


def test_names_are_told_apart_and_say_what_follows() -> None:
    names = [feature.name for feature in features.FEATURES]
    assert len(set(names)) == len(names)
    assert all(feature.without for feature in features.FEATURES)
    assert all(key.startswith("CONFIG_") for f in features.FEATURES for key in f.config)


def test_the_kernel_that_runs_has_a_version() -> None:
    assert features.version("6.18.44-fc-v509") == (6, 18)
    assert features.version("nonsense") == (0, 0)
