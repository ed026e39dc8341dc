"""The budget of instructions: what exceeds it fails, and names what grew."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.budget import compare, counts, native, tracing
from benchmarks.budget.compare import Verdict
from benchmarks.budget.counts import Amount, Count, Kept
from tracker.address import parse

COMPILED = ("-O3", "-DNDEBUG", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-O2")
SMALL, LARGE = "changes default-route 1000", "changes default-route 100000"
FLAGS = "address flags, default-route, 1000"
APPLY = "at_addr_apply (addr.c)"

PATHS = {
    "a path": {
        "instructions": Amount(100, {"first": 60, "second": 40}),
        "allocations": Amount(2, {"first calls malloc": 1, "first calls free": 1}),
    }
}


def of(path: str, **amounts: Amount) -> Count:
    return Count(path, amounts)


def told(counted: Count, kept: Kept = PATHS, *, known: bool = True) -> dict[str, Verdict]:
    return {line.measure: line for line in compare.verdicts([counted], kept, known=known)}


def test_as_much_as_before_and_a_little_more_is_no_news() -> None:
    for total in (100, 112):
        line = told(of("a path", instructions=Amount(total, {})))["instructions"]
        assert (line.said, line.failed) == (compare.OK, False)


def test_more_fails_and_names_what_grew_most_first() -> None:
    more = Amount(150, {"first": 70, "second": 42, "third": 38})
    line = told(of("a path", instructions=more))["instructions"]
    assert line.failed
    assert line.said == compare.OVER
    assert line.grown == ("third: at most 1 -> 38", "first: 60 -> 70", "second: 40 -> 42")


def test_less_asks_for_an_update_and_does_not_fail() -> None:
    line = told(of("a path", instructions=Amount(80, {})))["instructions"]
    assert (line.said, line.failed) == (compare.LESS, False)


def test_one_allocation_more_fails() -> None:
    line = told(of("a path", allocations=Amount(3, {"first calls malloc": 2})))["allocations"]
    assert line.failed
    assert line.grown == ("first calls malloc: 1 -> 2",)


def test_no_budget_makes_an_event_allocate() -> None:
    counted = of("a path", allocations=Amount(2, {}))._replace(event=True)
    assert told(counted)["allocations"].said == compare.ALLOCATES
    assert told(of("a path", allocations=Amount(2, {})))["allocations"].said == compare.OK


def test_a_path_that_nobody_has_kept_fails() -> None:
    line = told(of("another", instructions=Amount(1, {})))["instructions"]
    assert (line.said, line.failed) == (compare.NEW, True)


def test_a_path_that_is_counted_no_more_fails() -> None:
    (line,) = compare.verdicts([], PATHS, known=True)
    assert (line.path, line.said, line.failed) == ("a path", compare.GONE, True)


def test_an_unknown_compiler_may_take_more_and_not_allocate_more() -> None:
    counted = of("a path", instructions=Amount(145, {}), allocations=Amount(3, {}))
    known, unknown = told(counted), told(counted, known=False)
    assert known["instructions"].failed
    assert not unknown["instructions"].failed
    assert unknown["allocations"].failed
    assert told(of("a path", instructions=Amount(160, {})), known=False)["instructions"].failed


def test_the_most_of_several_compilers_is_what_an_unknown_one_is_held_to() -> None:
    other: Kept = {"a path": {"instructions": Amount(120, {}), "allocations": Amount(0, {})}}
    found = counts.largest([PATHS, other])["a path"]
    assert {name: amount.total for name, amount in found.items()} == {
        "instructions": 120,
        "allocations": 2,
    }


@pytest.mark.parametrize(("large", "said"), [(150, compare.OK), (170, compare.GROWS)])
def test_growth_is_bounded_however_small_the_counts_are(large: int, said: str) -> None:
    sizes = [
        Count(f"p, {size}", {"instructions": Amount(total, {"scan": total})}, "p", size)
        for size, total in ((10, 1), (1000, 100), (100_000, large))
    ]
    (line,) = compare.growth(sizes)
    assert line.said == said
    assert line.grown == ((f"scan: 100 -> {large}",) if line.failed else ())


def test_what_is_written_is_read_and_comes_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "HERE", tmp_path)
    made = [
        of("b", instructions=counts.amount({"x": 7, "rare": 0.01, "a": 2})),
        of("a", calls=Amount(0, {})),
    ]
    counts.write("gcc-1", made)
    text = counts.file_of("gcc-1").read_text()
    counts.write("gcc-1", made[::-1])
    assert counts.file_of("gcc-1").read_text() == text
    assert [line[:3] for line in text.splitlines()[1:-1]] == ['"a"', '"b"']
    kept = counts.read(counts.file_of("gcc-1"))
    assert kept["b"]["instructions"] == Amount(9.01, {"x": 7, "a": 2})


def test_bytecode_is_the_same_each_time_and_of_our_functions() -> None:
    first, second = (tracing.bytecode(lambda: parse("192.0.2.1")) for _ in range(2))
    assert first == second
    ours, others = first
    assert set(ours) == {"parse (tracker/address.py)"}
    assert all("tracker" not in name for name in others)
    assert tracing.c_functions(lambda: parse("192.0.2.1"))["inet_pton"] == 1


@pytest.fixture(scope="module")
def usual() -> Kept:
    """What the engine takes as it is."""
    return {count.path: dict(count.amounts) for count in native.count(groups=[SMALL, LARGE])}


def broken(folder: Path, statement: str) -> list[Path]:
    """The objects of the engine, with a statement at the start of at_addr_apply."""
    text = (native.ROOT / "native/addr.c").read_text()
    start = re.compile(r"^int at_addr_apply\(struct at_engine \*e, .*\)\n\{\n", re.MULTILINE)
    changed, times = start.subn(lambda found: f"{found[0]}\t{statement}\n", text)
    assert times == 1
    source, made = folder / "addr.c", folder / "addr.c.o"
    source.write_text(f"#include <stdlib.h>\n{changed}")
    include = [f"-I{native.ROOT / name}" for name in ("native", "bpf")]
    subprocess.run(["cc", *COMPILED, *include, "-c", source, "-o", made], check=True)
    return [path for path in native.objects_of_build() if path.name != made.name] + [made]


def failures(folder: Path, statement: str, usual: Kept, group: str) -> list[Verdict]:
    found = native.count(broken(folder, statement), [group])
    kept = {count.path: usual[count.path] for count in found}
    return [line for line in compare.verdicts(found, kept, known=True) if line.failed]


def test_the_same_engine_is_within_its_budget(usual: Kept) -> None:
    found = native.count(groups=[SMALL, LARGE])
    assert [line for line in compare.verdicts(found, usual, known=True) if line.said != "ok"] == []


def test_an_added_loop_is_named(usual: Kept, tmp_path: Path) -> None:
    lines = failures(tmp_path, "for (volatile int i = 0; i < 200; i++);", usual, SMALL)
    assert FLAGS in {line.path for line in lines}
    assert {line.measure for line in lines} == {"instructions"}
    assert all(line.grown[0].startswith(f"{APPLY}: ") for line in lines)


def test_an_added_allocation_is_named(usual: Kept, tmp_path: Path) -> None:
    statement = "void *volatile p = malloc(16); free(p);"
    lines = [
        line
        for line in failures(tmp_path, statement, usual, SMALL)
        if line.measure == "allocations"
    ]
    assert FLAGS in {line.path for line in lines}
    for line in lines:
        assert line.grown == (f"{APPLY} calls free: 0 -> 64", f"{APPLY} calls malloc: 0 -> 64")


def test_an_added_scan_grows_whatever_it_takes(usual: Kept, tmp_path: Path) -> None:
    """Over the links alone, a hundredth of the addresses."""
    statement = "for (volatile uint32_t i = 0; i < e->links_cap; i++);"
    objects = broken(tmp_path, statement)
    found = native.count(objects, [SMALL, LARGE])
    lines = [line for line in compare.growth(found) if line.failed]
    assert "address flags, default-route" in {line.path for line in lines}
    assert all(line.grown[0].startswith(f"{APPLY}: ") for line in lines)
