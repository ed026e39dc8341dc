"""Takes the kernel proper out of a bzImage: `python vmlinux.py BZIMAGE VMLINUX`.

The layout is in Documentation/arch/x86/boot.rst.
"""

from __future__ import annotations

import lzma
import struct
import subprocess
import sys
from pathlib import Path

_SETUP_SECTORS = 0x1F1
_PAYLOAD = 0x248
"""Offset (from the end of the setup code) and length."""
_SECTOR = 512


def payload(image: bytes) -> bytes:
    """The compressed kernel."""
    start = (image[_SETUP_SECTORS] + 1) * _SECTOR
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    return image[start + offset : start + offset + length]


def unpacked(data: bytes) -> bytes:
    """The kernel, whichever way it is compressed; four bytes of length follow what was packed."""
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # It ends with an error for those four bytes, after all else.
        done = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=False)
        return done.stdout
    raise SystemExit(f"a kernel compressed in another way than xz or zstd: {data[:6].hex()}")


def main(source: str, target: str) -> None:
    """Entry point."""
    kernel = unpacked(payload(Path(source).read_bytes()))
    if not kernel.startswith(b"\x7fELF"):
        raise SystemExit(f"no kernel in {source}")
    Path(target).write_bytes(kernel)


if __name__ == "__main__":
    main(*sys.argv[1:])
