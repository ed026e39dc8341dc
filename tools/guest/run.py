"""Runs a command on another kernel: `python run.py KERNEL SECONDS COMMAND...`.

KERNEL is a folder that tools/guest/kernel made. The command sees this host's files, in the current
folder, as root; what it writes is gone with the guest. Its output is passed on and its exit status
is ours. A guest that ends without one (a panic, or no end within SECONDS) is started once more;
then the status is 125.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

NO_STATUS = 125
_CONSOLE_LINES = 60


def qemu(kernel: Path, job: Path) -> list[str]:
    """The command line: emulated, since /dev/kvm may be there and not work.

    Without cx16=off guests with 6.12 crash at random under QEMU 7.2.
    """
    share = "local,security_model=none"
    return [
        "qemu-system-x86_64",
        *("-accel", "tcg,thread=multi", "-cpu", "max,cx16=off", "-smp", "2", "-m", "2048"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel / "vmlinux"), "-initrd", str(kernel / "initramfs")),
        *("-append", "console=ttyS0 quiet panic=-1 oops=panic softlockup_panic=1"),
        *("-serial", f"file:{job / 'console'}", "-serial", "stdio"),
        *("-fsdev", f"{share},id=host,path=/,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
        *("-fsdev", f"{share},id=job,path={job}"),
        *("-device", "virtio-9p-pci,fsdev=job,mount_tag=job"),
    ]


def attempt(kernel: Path, seconds: float, command: list[str]) -> int | None:
    """One guest; None: it gave no status."""
    with tempfile.TemporaryDirectory(prefix="guest-") as name:
        job = Path(name)
        line = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(command)}\n"
        (job / "command").write_text(line)
        (job / "modules").write_text(str(kernel / "lib/modules" / kernel.name))
        with subprocess.Popen(
            qemu(kernel, job), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ) as guest:
            limit = threading.Timer(seconds, guest.kill)
            limit.start()
            assert guest.stdout is not None
            while chunk := os.read(guest.stdout.fileno(), 1 << 16):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
            guest.wait()
            limit.cancel()
        status = job / "status"
        if status.exists() and (text := status.read_text().strip()):
            if text != "0":
                _console(job)
            return int(text)
        print(f"the guest gave no status (QEMU ended with {guest.returncode})", flush=True)
        _console(job)
        return None


def _console(job: Path) -> None:
    """The kernel's last words."""
    console = job / "console"
    text = console.read_text(errors="replace") if console.exists() else ""
    for line in text.splitlines()[-_CONSOLE_LINES:]:
        if "reboot: Power down" not in line:
            print(f"console: {line}", flush=True)


def main(kernel: str, seconds: str, *command: str) -> int:
    """Entry point; the exit status."""
    for _ in range(2):
        status = attempt(Path(kernel).resolve(), float(seconds), list(command))
        if status is not None:
            return status
    return NO_STATUS


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
