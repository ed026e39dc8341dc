"""Small programs of tests' own for the kernel, and the maps that they use."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from pathlib import Path

BPF_MAP_TYPE_RINGBUF = 27
_BPF = {"x86_64": 321}.get(os.uname().machine, 280)  # asm-generic, which the others have

HEAD = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
char _license[] SEC("license") = "GPL";
"""

PLAIN = """
SEC("socket") int at_filter(struct __sk_buff *skb)
{
	__u64 value = 7;

	bpf_ringbuf_output(&ring, &value, sizeof(value), 0);
	return 0;
}
"""

# Reads a field of a task, as its place in this kernel is found by BTF.
WITH_TASKS = """
#include <bpf/bpf_core_read.h>
struct task_struct { int tgid; } __attribute__((preserve_access_index));
SEC("socket") int at_filter_tasks(struct __sk_buff *skb)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 value = BPF_CORE_READ(task, tgid);

	bpf_ringbuf_output(&ring, &value, sizeof(value), 0);
	return 0;
}
"""

REFUSED = """
SEC("socket") int at_refused(struct __sk_buff *skb)
{
	return *(volatile int *)8;
}
"""


def ring() -> int:
    """A descriptor of a new ring buffer of 4 KiB."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("=IIIII", BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0).ljust(128, b"\0")
    descriptor: int = libc.syscall(_BPF, 0, attributes, len(attributes))
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    return descriptor


def compile_object(folder: Path, text: str) -> None:
    """Make folder/filter.bpf.o, as the build does."""
    source = folder / "filter.bpf.c"
    source.write_text(text)
    architecture = subprocess.run(
        ["gcc", "-print-multiarch"], check=True, capture_output=True, text=True
    ).stdout.strip()
    command = ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g"]
    command += ["-isystem", f"/usr/include/{architecture}", "-c", str(source)]
    subprocess.run([*command, "-o", str(folder / "filter.bpf.o")], check=True)
