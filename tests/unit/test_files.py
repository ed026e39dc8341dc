"""What readers of the published files see, also while things go wrong."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tracker import atomic
from tracker.errors import PublishError
from tracker.publish.files import FilesPublisher
from tracker.publish.worker import PublisherStats, Worker

NAMES = {"node.json", "primary-ip", "ipv4", "ipv6"}


def document(
    ipv4: str | None = None,
    ipv6: str | None = None,
    families: tuple[str, ...] = ("ipv4", "ipv6"),
    **other: Any,
) -> dict[str, Any]:
    return {"families": list(families), "primary": {"ipv4": ipv4, "ipv6": ipv6}, **other}


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def identity(directory: Path) -> dict[str, tuple[int, int]]:
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.iterdir()
    }


def test_both_families_are_bare_values(tmp_path: Path) -> None:
    directory = tmp_path / "run" / "addrtracker"
    both = document("192.0.2.1", "2001:db8::1")
    assert FilesPublisher(str(directory)).publish(both) == 4
    found = contents(directory)
    assert json.loads(found.pop("node.json")) == both
    assert found == {"primary-ip": "192.0.2.1", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1"}


def test_everybody_may_read_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        FilesPublisher(str(tmp_path)).publish(document("192.0.2.1"))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o644}


def test_a_family_that_never_had_an_address_has_no_file(tmp_path: Path) -> None:
    FilesPublisher(str(tmp_path)).publish(document())
    assert set(contents(tmp_path)) == {"node.json"}
    FilesPublisher(str(tmp_path)).publish(document(ipv6="2001:db8::1"))
    assert set(contents(tmp_path)) == NAMES - {"ipv4"}
    assert contents(tmp_path)["primary-ip"] == "2001:db8::1"


def test_nothing_takes_the_place_of_a_value(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path))
    publisher.publish(document("192.0.2.1", "2001:db8::1"))
    publisher.publish(document())
    found = contents(tmp_path)
    assert (found["primary-ip"], found["ipv4"], found["ipv6"]) == (
        "192.0.2.1",
        "192.0.2.1",
        "2001:db8::1",
    )


def test_what_did_not_change_is_not_touched(tmp_path: Path) -> None:
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", "2001:db8::1"))
    before = identity(tmp_path)
    assert FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", "2001:db8::1")) == 0
    assert identity(tmp_path) == before
    assert FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", "2001:db8::2")) == 2
    after = identity(tmp_path)
    assert {name for name in NAMES if before[name] != after[name]} == {"node.json", "ipv6"}


def test_primary_ip_stays_with_its_family(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path))
    publisher.publish(document(ipv6="2001:db8::1"))
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", "2001:db8::2"))
    assert contents(tmp_path)["primary-ip"] == "2001:db8::2"


def test_primary_ip_follows_the_order_that_was_asked_for(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path), reorder=True)
    publisher.publish(document(ipv6="2001:db8::1"))
    publisher.publish(document("192.0.2.1", "2001:db8::1"))
    assert contents(tmp_path)["primary-ip"] == "192.0.2.1"


def test_primary_ip_of_a_family_that_is_not_wanted_any_more_goes(tmp_path: Path) -> None:
    FilesPublisher(str(tmp_path)).publish(document(ipv6="2001:db8::1"))
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", families=("ipv4",)))
    assert contents(tmp_path)["primary-ip"] == "192.0.2.1"


@pytest.mark.parametrize(("reorder", "left"), [(True, set()), (False, {"ipv6"})])
def test_the_file_of_a_family_that_is_not_wanted_goes_where_families_are_configured(
    tmp_path: Path, reorder: bool, left: set[str]
) -> None:
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1", "2001:db8::1"))
    only = document("192.0.2.1", families=("ipv4",))
    publisher = FilesPublisher(str(tmp_path), reorder=reorder)
    assert publisher.publish(only) == 1 + reorder
    assert set(contents(tmp_path)) == NAMES - {"ipv6"} | left
    assert publisher.publish(only) == 0


def selection(ipv4: str | None = None, ipv6: str | None = None) -> dict[str, Any]:
    return {"primary": {"ipv4": ipv4, "ipv6": ipv6}}


def values(directory: Path) -> dict[str, dict[str, str]]:
    """By selection."""
    return {path.name: contents(path) for path in (directory / "selections").iterdir()}


def test_named_selections_have_directories_of_their_own(tmp_path: Path) -> None:
    named = {"storage": selection("10.5.0.1", "fd00::5"), "bgp": selection(ipv6="fd00::6")}
    made = document("192.0.2.1", selections=named)
    assert FilesPublisher(str(tmp_path)).publish(made) == 3 + 3 + 2
    assert values(tmp_path) == {
        "storage": {"ipv4": "10.5.0.1", "ipv6": "fd00::5", "primary-ip": "10.5.0.1"},
        "bgp": {"ipv6": "fd00::6", "primary-ip": "fd00::6"},
    }
    assert (tmp_path / "ipv4").read_text() == "192.0.2.1"
    assert FilesPublisher(str(tmp_path)).publish(made) == 0


def test_nothing_takes_the_place_of_a_selections_value(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path))
    publisher.publish(document("192.0.2.1", selections={"bgp": selection("10.5.0.1")}))
    publisher.publish(document("192.0.2.1", selections={"bgp": selection()}))
    assert values(tmp_path)["bgp"] == {"ipv4": "10.5.0.1", "primary-ip": "10.5.0.1"}


def test_a_selection_that_is_not_configured_any_more_goes(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path))
    both = {"bgp": selection("10.5.0.1"), "storage": selection("10.6.0.1")}
    publisher.publish(document("192.0.2.1", selections=both))
    (tmp_path / "selections" / "note").touch()
    left = document("192.0.2.1", selections={"bgp": both["bgp"]})
    assert publisher.publish(left) == 2 + 1
    assert {path.name for path in (tmp_path / "selections").iterdir()} == {"bgp", "note"}
    assert publisher.publish(left) == 0


def test_a_selection_that_cannot_be_written_does_not_keep_the_node(tmp_path: Path) -> None:
    (tmp_path / "selections").touch()
    made = document("192.0.2.1", selections={"bgp": selection("10.5.0.1")})
    with pytest.raises(PublishError, match=r"^files: .*selections"):
        FilesPublisher(str(tmp_path)).publish(made)
    assert (tmp_path / "primary-ip").read_text() == "192.0.2.1"
    assert (tmp_path / "node.json").exists()


def test_a_selections_value_of_another_boot_goes(tmp_path: Path) -> None:
    both = {"bgp": selection("10.5.0.1", "fd00::5")}
    FilesPublisher(str(tmp_path), boot_id="one").publish(document(selections=both))
    only = {"bgp": selection(ipv6="fd00::5")}
    FilesPublisher(str(tmp_path), boot_id="two").publish(document(selections=only))
    assert values(tmp_path)["bgp"] == {"ipv6": "fd00::5", "primary-ip": "fd00::5"}


def test_rubbish_in_primary_ip_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "primary-ip").write_bytes(b"\xff\n")
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1"))
    assert contents(tmp_path)["primary-ip"] == "192.0.2.1"


@pytest.mark.parametrize("name", ["ipv4", "primary-ip", "node.json", ".boot"])
def test_a_pipe_in_the_place_of_a_file_is_replaced(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    FilesPublisher(str(tmp_path), boot_id="one").publish(document("192.0.2.1"))
    assert (tmp_path / name).is_file()
    assert contents(tmp_path)["ipv4"] == "192.0.2.1"


def test_one_file_that_fails_does_not_keep_the_others(tmp_path: Path) -> None:
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4" / "x").touch()
    with pytest.raises(PublishError, match=r"^files: .*ipv4: Is a directory$"):
        FilesPublisher(str(tmp_path)).publish(document("192.0.2.1"))
    assert (tmp_path / "primary-ip").read_text() == "192.0.2.1"
    assert (tmp_path / "node.json").exists()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PublishError, match=r"^files: .*file/sub: Not a directory$"):
        FilesPublisher(str(tmp_path / "file" / "sub")).publish(document("192.0.2.1"))


def test_a_write_that_fails_keeps_the_old_value_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = FilesPublisher(str(tmp_path))
    publisher.publish(document("192.0.2.1"))

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PublishError, match=r": No space left on device$"):
        publisher.publish(document("192.0.2.2"))
    assert contents(tmp_path)["ipv4"] == "192.0.2.1"
    assert set(contents(tmp_path)) == NAMES - {"ipv6"}


def test_leftovers_of_a_killed_writer_go(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from tracker import atomic\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic.write_atomically(Path(sys.argv[1]) / 'ipv4', b'192.0.2.9')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name.endswith("-ipv4") for path in tmp_path.iterdir()] == [True]
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1"))
    assert set(contents(tmp_path)) == NAMES - {"ipv6"}
    assert contents(tmp_path)["ipv4"] == "192.0.2.1"


def test_a_file_that_another_writes_is_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def meddle(descriptor: int) -> None:
        atomic.remove_leftovers(tmp_path)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", meddle)
    atomic.write_atomically(tmp_path / "ipv4", b"192.0.2.1")
    assert contents(tmp_path) == {"ipv4": "192.0.2.1"}


def test_readers_always_see_a_whole_document(tmp_path: Path) -> None:
    publisher = FilesPublisher(str(tmp_path))
    addresses = [f"192.0.2.{n}" for n in range(1, 101)]
    publisher.publish(document(addresses[0], filler="x" * 100_000))
    stop = threading.Event()
    seen: list[tuple[str, str]] = []

    def read() -> None:
        while not stop.is_set():
            node = json.loads((tmp_path / "node.json").read_text())
            seen.append((node["primary"]["ipv4"], (tmp_path / "ipv4").read_text()))

    reader = threading.Thread(target=read)
    reader.start()
    for address in addresses:
        publisher.publish(document(address, filler="x" * 100_000))
    stop.set()
    reader.join()
    assert seen
    assert {address for pair in seen for address in pair} <= set(addresses)


class Flaky:
    """A publisher that fails as often as it is told."""

    name = "flaky"

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.published: list[Any] = []

    def publish(self, document: dict[str, Any]) -> int:
        if self.failures:
            self.failures -= 1
            raise PublishError("flaky: no")
        self.published.append(document["n"])
        return 1


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def worker(publisher: Flaky) -> tuple[Worker, Clock, list[str | None]]:
    clock = Clock()
    reports: list[str | None] = []
    made = Worker(
        publisher,
        lambda name, error: reports.append(None if error is None else str(error)),
        clock,
    )
    return made, clock, reports


def test_only_the_newest_document_is_published() -> None:
    publisher = Flaky()
    made, _, _ = worker(publisher)
    for n in range(5):
        made.submit({"n": n})
    assert made.step() is None
    assert publisher.published == [4]
    assert made.step() is None
    assert publisher.published == [4]


def test_a_failing_publisher_is_retried_after_a_second_doubling_to_a_minute() -> None:
    publisher = Flaky(failures=9)
    made, clock, reports = worker(publisher)
    made.submit({"n": 1})
    waits = []
    while (wait := made.step()) is not None:
        waits.append(wait)
        clock.now += wait
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert publisher.published == [1]
    assert reports == ["flaky: no", None]
    assert made.stats() == PublisherStats("flaky", writes=1, failures=9, failing=False)


def test_nothing_is_tried_before_its_time() -> None:
    publisher = Flaky(failures=1)
    made, clock, _ = worker(publisher)
    made.submit({"n": 1})
    assert made.step() == 1
    assert made.stats().failing
    clock.now += 0.75
    assert made.step() == 0.25
    assert publisher.published == []


def test_a_newer_document_takes_the_place_of_one_that_failed() -> None:
    publisher = Flaky(failures=1)
    made, clock, _ = worker(publisher)
    made.submit({"n": 1})
    made.step()
    made.submit({"n": 2})
    assert made.step() == 1
    clock.now += 1
    assert made.step() is None
    assert publisher.published == [2]


def test_a_document_that_came_while_another_failed_is_not_lost() -> None:
    class Overtaken(Flaky):
        def publish(self, document: dict[str, Any]) -> int:
            if self.failures:
                made.submit({"n": 2})
            return super().publish(document)

    publisher = Overtaken(failures=1)
    made, clock, _ = worker(publisher)
    made.submit({"n": 1})
    made.step()
    clock.now += 1
    made.step()
    assert publisher.published == [2]


def test_the_thread_publishes_and_stops() -> None:
    publisher = Flaky()
    made, _, _ = worker(publisher)
    made.start()
    for n in range(100):
        made.submit({"n": n})
    made.stop()
    assert publisher.published[-1] == 99


def test_stopping_tries_once_more_and_does_not_wait_for_the_backoff() -> None:
    publisher = Flaky(failures=1)
    made, _, _ = worker(publisher)
    reported = threading.Event()
    made._report = lambda name, error: reported.set()
    made.submit({"n": 1})
    made.start()
    assert reported.wait(10)
    made.stop()
    assert publisher.published == [1]


def test_what_another_boot_left_is_nobodys_value(tmp_path: Path) -> None:
    both = document("192.0.2.1", "2001:db8::1")
    FilesPublisher(str(tmp_path), boot_id="one").publish(both)
    FilesPublisher(str(tmp_path), boot_id="one").publish(document("192.0.2.1"))
    assert (tmp_path / "ipv6").exists(), "a value is not replaced by an empty one"
    publisher = FilesPublisher(str(tmp_path), boot_id="two")
    assert publisher.publish(document("192.0.2.2")) == 4
    found = contents(tmp_path)
    assert found.pop("node.json")
    assert found == {"primary-ip": "192.0.2.2", "ipv4": "192.0.2.2", ".boot": "two"}
    FilesPublisher(str(tmp_path), boot_id="three").publish(document())
    assert {path.name for path in tmp_path.iterdir()} == {"node.json", ".boot"}


def test_files_of_an_unknown_boot_stay(tmp_path: Path) -> None:
    FilesPublisher(str(tmp_path)).publish(document("192.0.2.1"))
    FilesPublisher(str(tmp_path), boot_id="two").publish(document())
    assert (tmp_path / "ipv4").read_text() == "192.0.2.1"
