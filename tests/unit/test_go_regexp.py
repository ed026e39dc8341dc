"""Regular expressions as Go reads them: what matches, what it refuses, what cannot be said."""

from __future__ import annotations

import warnings

import pytest

from tests.unit.test_profiles import two_uplinks
from tracker.errors import UsageError
from tracker.profiles.go_regexp import GoRegexpError, UntranslatedError, compiled
from tracker.profiles.registry import choose

NAMES = ("eth0", "ETH1", "bond0.100", "br-ex", "{,3}", "a.+b", "x]", "B", "n\N{SUPERSCRIPT TWO}")


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("eth", ["eth0"]),
        ("^(?:eth|br-)", ["eth0", "br-ex"]),
        ("(?i)^eth", ["eth0", "ETH1"]),
        ("((?i)^eth)|(ex$)", ["eth0", "ETH1", "br-ex"]),
        ("(?i:e)th|(?P<n>ex)|(?<m>x])", ["eth0", "br-ex", "x]"]),
        ("(?)eth(?-i:0)", ["eth0"]),
        (r"\d{3}\z", ["bond0.100"]),
        (r"\d$", ["eth0", "ETH1", "bond0.100"]),
        ("^[[:lower:]]+[[:digit:]]$", ["eth0"]),
        ("^[^[:alpha:]]", ["{,3}"]),
        (r"[]x]]|[\x{42}]$", ["x]", "B"]),
        ("{,3}", ["{,3}"]),
        (r"\Q.+\E", ["a.+b"]),
        (r"\Q.+", ["a.+b"]),
        (r"\x42|\102", ["B"]),
        ("[a&&b]&?|[[c]", ["bond0.100", "br-ex", "a.+b"]),
        ("", list(NAMES)),
    ],
)
def test_what_go_takes_matches_as_there(text: str, matching: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pattern = compiled(text)
    assert [name for name in NAMES if pattern.search(name)] == matching


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("eth(?!0)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?=e)eth", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=e)th", "invalid or unsupported Perl syntax: `(?<=`"),
        ("(?<!e)th", "invalid or unsupported Perl syntax: `(?<!`"),
        ("(?>eth)", "invalid or unsupported Perl syntax: `(?>`"),
        ("(?#eth)", "invalid or unsupported Perl syntax: `(?#`"),
        ("(?x)eth", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?P<n>e)(?P=n)", "invalid or unsupported Perl syntax: `(?P=`"),
        (r"(e)\1", r"invalid escape sequence: `\1`"),
        (r"eth\Z", r"invalid escape sequence: `\Z`"),
        (r"eth\N", r"invalid escape sequence: `\N`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000}`"),
        ("eth++", "invalid nested repetition operator: `++`"),
        ("eth{2}*", "invalid nested repetition operator: `{2}*`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("(|+)", "missing argument to repetition operator: `+`"),
        ("e{1001}", "invalid repeat count: `{1001}`"),
        ("e{3,1}", "invalid repeat count: `{3,1}`"),
        (f"e{{{'9' * 5000}}}", f"invalid repeat count: `{{{'9' * 56}...`"),
        ("(eth", "missing closing ): `(eth`"),
        ("eth)", "unexpected ): `eth)`"),
        ("[eth", "missing closing ]: `[eth`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        ("eth\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_go_refuses_fails_in_its_words(text: str, line: str) -> None:
    with pytest.raises(GoRegexpError) as raised:
        compiled(text)
    assert str(raised.value) == f"error parsing regexp: {line}"


@pytest.mark.parametrize(
    "text", [r"\pL", r"[\pL]", r"\C", "(?U)e", "e(?i)th", "[[:^alpha:]]", "^*"]
)
def test_what_cannot_be_said_in_python_is_no_failure_of_go(text: str) -> None:
    with pytest.raises(UntranslatedError):
        compiled(text)


@pytest.mark.parametrize(
    ("profile", "option"), [("calico", "method"), ("calico", "method6"), ("flannel", "iface-regex")]
)
def test_every_profile_goes_by_one_rule(profile: str, option: str) -> None:
    """What the system refuses is its failure; what we cannot read is a wrong option."""
    prefix = "interface=" if profile == "calico" else ""
    given = {"method": "interface=none", option: f"{prefix}eth(?!0)"}
    if profile == "flannel":
        del given["method"]
    found = choose(profile, two_uplinks(), given)
    assert "error parsing regexp: invalid or unsupported Perl syntax: `(?!`" in (found.error or "")
    with pytest.raises(UsageError, match="does without"):
        choose(profile, two_uplinks(), {**given, option: rf"{prefix}\pL"})
