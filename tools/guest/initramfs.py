"""Makes the initramfs of a guest: `python initramfs.py MODULES OUT` (MODULES: lib/modules/VERSION).

It holds a static busybox, tools/guest/init and the modules that mounting the host's / needs.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

_WANTED = ("virtio_pci", "9pnet_virtio", "9p", "overlay")


def dependencies(modules: Path) -> dict[str, tuple[str, ...]]:
    """Each module's path and those that it needs, by its name."""
    found = {}
    for line in (modules / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, needs = line.partition(":")
        found[_name(path)] = (path, *needs.split())
    return found


def in_order(modules: Path, wanted: tuple[str, ...] = _WANTED) -> list[Path]:
    """The modules and all that they need, what is needed first; built-in ones are left out."""
    known = dependencies(modules)
    ordered: list[Path] = []

    def add(name: str) -> None:
        path, *needs = known[name]
        for need in needs:
            add(_name(need))
        if modules / path not in ordered:
            ordered.append(modules / path)

    for name in wanted:
        if name in known:
            add(name)
    return ordered


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".ko").replace("-", "_")


def _entry(number: int, name: str, mode: int, data: bytes = b"") -> bytes:
    """One file of a cpio archive (newc): Documentation/driver-api/early-userspace."""
    encoded = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def archive(modules: Path, busybox: Path, init: Path) -> bytes:
    """The whole archive, uncompressed: unpacking costs the guest more than reading."""
    ordered = in_order(modules)
    names = "".join(f"/modules/{path.name}\n" for path in ordered).encode()
    folders = ("bin", "modules", "proc", "sys", "dev", "host", "upper", "root")
    files = {
        "init": init.read_bytes(),
        "bin/busybox": busybox.read_bytes(),
        "modules/order": names,
    } | {f"modules/{path.name}": path.read_bytes() for path in ordered}
    entries = [(name, 0o040755, b"") for name in folders]
    entries += [(name, 0o100755, data) for name, data in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    return b"".join(_entry(number, *entry) for number, entry in enumerate(entries, 1))


def main(modules: str, target: str) -> None:
    """Entry point."""
    busybox = shutil.which("busybox")
    if busybox is None:
        raise SystemExit("no busybox")
    init = Path(__file__).with_name("init")
    new = Path(f"{target}.new")
    new.write_bytes(archive(Path(modules), Path(busybox), init))
    os.replace(new, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
