"""The binary record of bpf/records.h: encode, decode, describe."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from tracker.address import text
from tracker.capture.payload import (
    DUMP_AUDIT,
    DUMP_UNPROVEN,
    F_DUMP,
    F_KERNEL,
    F_TASK,
    F_TRUNCATED,
    F_UNTRUSTED,
    FOREVER,
    KIND_OF,
    LEGS_MAX,
    VERSION,
    Addr,
    Dump,
    Flush,
    Header,
    Kind,
    Leg,
    Link,
    Loss,
    LossCause,
    MalformedRecord,
    Member,
    Nexthop,
    Op,
    Payload,
    Phase,
    Record,
    Route,
    Rule,
    Task,
)
from tracker.model import AF_INET, AF_INET6, Scope

__all__ = [
    "DUMP_AUDIT",
    "DUMP_UNPROVEN",
    "FOREVER",
    "F_DUMP",
    "F_KERNEL",
    "F_TASK",
    "F_TRUNCATED",
    "F_UNTRUSTED",
    "KIND_OF",
    "LEGS_MAX",
    "VERSION",
    "Addr",
    "Dump",
    "Flush",
    "Header",
    "Kind",
    "Leg",
    "Link",
    "Loss",
    "LossCause",
    "MalformedRecord",
    "Member",
    "Nexthop",
    "Op",
    "Payload",
    "Phase",
    "Record",
    "Route",
    "Rule",
    "Task",
    "decode",
    "describe",
    "encode",
    "iter_records",
    "text",
]

# Byte order is put in front: "=" in memory, "<" in a recording. Neither aligns by itself.
_HEADER = "HBBBxHIIQII"
_ADDR = "IIIIIIBBBB4x16s16s"
_LINK = "IIIIIIHBx4x16s16s"
_ROUTE = "IIIIIBBBBBBBB4x16s16s"
_LEG = "IHBB16s"
_NEXTHOP = "IIIBBBBBB2x4x16s"
_MEMBER = "IH2x"
_LOSS = "IIQ"
_DUMP = "IIIIII"
_RULE = "IIBB2x4x"
_FLUSH = "IIIBBBB16s"
_TASK = "I4x16s"

HEADER_SIZE = struct.calcsize("=" + _HEADER)
_PAYLOAD = {
    Kind.ADDR: _ADDR,
    Kind.LINK: _LINK,
    Kind.ROUTE: _ROUTE,
    Kind.NEXTHOP: _NEXTHOP,
    Kind.LOSS: _LOSS,
    Kind.DUMP: _DUMP,
    Kind.RULE: _RULE,
    Kind.FLUSH: _FLUSH,
}
_PAYLOAD_SIZE = {kind: struct.calcsize("=" + layout) for kind, layout in _PAYLOAD.items()}
_LEG_SIZE = struct.calcsize("=" + _LEG)
_MEMBER_SIZE = struct.calcsize("=" + _MEMBER)
_TASK_SIZE = struct.calcsize("=" + _TASK)

_LENGTH = {AF_INET: 4, AF_INET6: 16}
_ATTRIBUTIONS = {"process": 0, "kernel": F_KERNEL, "untrusted": F_UNTRUSTED}
_NAME_LEN = 16
_EMPTY = bytes(16)


def encode(record: Record, order: str = "=") -> bytes:
    """The record as bytes; `order` as for struct: "=" native, "<" for a recording.

    Raises MalformedRecord where decode() would, or where a value does not fit its field.
    """
    try:
        raw = _encode(record, order)
    except (struct.error, KeyError) as error:
        raise MalformedRecord(f"{record.kind.name.lower()} record: {error}") from None
    decode(raw, order)
    return raw


def _encode(record: Record, order: str) -> bytes:
    head, payload, task = record
    body = _encode_payload(payload, order)
    flags = head.flags & ~F_TASK
    if task is not None:
        flags |= F_TASK | _ATTRIBUTIONS[task.attribution]
        body += struct.pack(order + _TASK, task.tgid, _name_bytes(task.comm))
    header = struct.pack(
        order + _HEADER,
        HEADER_SIZE + len(body),
        VERSION,
        record.kind,
        head.op,
        head.nl_flags,
        head.seq,
        flags,
        head.boot_ns,
        head.portid,
        head.slot,
    )
    return header + body


def _encode_payload(payload: Payload, order: str) -> bytes:
    p = payload
    if isinstance(p, Addr):
        numbers = (p.ifindex, p.flags, p.valid, p.preferred, p.cstamp, p.priority)
        small = (p.family, p.prefixlen, p.scope, p.proto)
        return struct.pack(order + _ADDR, *numbers, *small, p.local, p.peer)
    if isinstance(p, Link):
        numbers = (p.ifindex, p.flags, p.master, p.lower, p.vrf_table, p.mtu)
        names = (_name_bytes(p.name), _name_bytes(p.kind))
        return struct.pack(order + _LINK, *numbers, p.type, p.operstate, *names)
    if isinstance(p, Route):
        wide = (p.table, p.metric, p.nh_id, p.expires, p.rtm_flags)
        small = (p.family, p.dst_len, p.tos, p.proto)
        rest = (p.type, p.scope, p.pref, len(p.legs))
        head = struct.pack(order + _ROUTE, *wide, *small, *rest, p.dst, p.prefsrc)
        return head + b"".join(struct.pack(order + _LEG, *leg) for leg in p.legs)
    if isinstance(p, Nexthop):
        head = struct.pack(
            order + _NEXTHOP,
            *(p.id, p.oif, p.flags, p.family, p.proto, p.gw_family),
            *(p.blackhole, p.fdb, len(p.members), p.gw),
        )
        return head + b"".join(struct.pack(order + _MEMBER, *member) for member in p.members)
    if isinstance(p, Loss):
        return struct.pack(order + _LOSS, *p)
    if isinstance(p, Rule):
        return struct.pack(order + _RULE, p.table, p.priority, p.family, p.action)
    if isinstance(p, Flush):
        flushed = (p.table, p.metric, p.oif)
        return struct.pack(order + _FLUSH, *flushed, p.family, p.dst_len, p.tos, p.type, p.dst)
    return struct.pack(order + _DUMP, *p)


def _name_bytes(name: str) -> bytes:
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) >= _NAME_LEN:
        raise MalformedRecord(f"name {name!r} is longer than {_NAME_LEN - 1} bytes")
    return raw


def decode(raw: bytes, order: str = "=") -> Record:
    """The record that `raw` is, no more and no less; raises MalformedRecord."""
    size = _check_header(raw, 0, order)
    if size != len(raw):
        raise MalformedRecord(f"record of {size} bytes in {len(raw)}")
    return _decode(raw, 0, size, order)


def iter_records(raw: bytes, order: str = "=") -> Iterator[Record]:
    """The records in `raw`, one after the other; raises MalformedRecord at the first bad one."""
    offset = 0
    while offset < len(raw):
        size = _check_header(raw, offset, order)
        yield _decode(raw, offset, size, order)
        offset += size


def _check_header(raw: bytes, offset: int, order: str) -> int:
    """Size in bytes of the record at `offset`, which is wholly there."""
    if len(raw) - offset < HEADER_SIZE:
        raise MalformedRecord(f"{len(raw) - offset} bytes are too short for a header")
    size, version, kind = struct.unpack_from(order + "HBB", raw, offset)
    if version != VERSION:
        raise MalformedRecord(f"version {version}, expected {VERSION}")
    if kind not in _PAYLOAD:
        raise MalformedRecord(f"kind {kind}")
    if not HEADER_SIZE + _PAYLOAD_SIZE[kind] <= size <= len(raw) - offset:
        raise MalformedRecord(f"size {size} of kind {kind}, {len(raw) - offset} bytes are there")
    return int(size)


def _decode(raw: bytes, offset: int, size: int, order: str) -> Record:
    fields = struct.unpack_from(order + _HEADER, raw, offset)
    _, _, number, op, nl_flags, seq, flags, boot_ns, portid, slot = fields
    kind = Kind(number)
    if kind in (Kind.LOSS, Kind.DUMP):
        op = Op.NEW
    elif op not in (Op.NEW, Op.DEL):
        raise MalformedRecord(f"operation {op}")
    start = offset + HEADER_SIZE
    tail = start + _PAYLOAD_SIZE[kind]
    end = offset + size - (_TASK_SIZE if flags & F_TASK else 0)
    values = struct.unpack_from(order + _PAYLOAD[kind], raw, start)
    payload = _DECODERS[kind](values, raw[tail:end] if end > tail else b"", order)
    if tail + _tail_size(payload) != end:
        raise MalformedRecord(f"size {size} of a {kind.name.lower()} record")
    task = None
    if flags & F_TASK:
        tgid, comm = struct.unpack_from(order + _TASK, raw, end)
        task = Task(tgid, _name(comm), _attribution(flags))
    return Record(Header(Op(op), boot_ns, nl_flags, seq, flags, portid, slot), payload, task)


def _tail_size(payload: Payload) -> int:
    if isinstance(payload, Route):
        return len(payload.legs) * _LEG_SIZE
    if isinstance(payload, Nexthop):
        return len(payload.members) * _MEMBER_SIZE
    return 0


def _decode_addr(values: tuple[Any, ...], _tail: bytes, _order: str) -> Addr:
    ifindex, flags, valid, preferred, cstamp, priority, *rest = values
    family, prefixlen, scope, proto, local, peer = rest
    length = _family_length(family)
    _check_prefix(prefixlen, length)
    addresses = (local[:length], prefixlen, _optional(peer, length))
    times = (valid, preferred, cstamp)
    return Addr(family, ifindex, *addresses, flags, *times, priority, scope, proto)


def _decode_link(values: tuple[Any, ...], _tail: bytes, _order: str) -> Link:
    ifindex, flags, master, lower, vrf_table, mtu, arp_type, operstate, name, kind = values
    numbers = (flags, master, lower, vrf_table, mtu, arp_type, operstate)
    return Link(ifindex, _terminated(name), *numbers, _terminated(kind))


def _decode_route(values: tuple[Any, ...], tail: bytes, order: str) -> Route:
    table, metric, nh_id, expires, rtm_flags, family, dst_len, tos, proto, *rest = values
    kind, scope, pref, count, dst, prefsrc = rest
    length = _family_length(family)
    _check_prefix(dst_len, length)
    _check_tail(count, _LEG_SIZE, tail)
    legs = tuple(
        Leg(oif, weight, flags, gw_family, _gateway(gw_family, gw))
        for oif, weight, flags, gw_family, gw in struct.iter_unpack(order + _LEG, tail)
    )
    key = (family, table, metric, dst_len, _optional(dst, length), tos)
    attributes = (proto, kind, scope, pref, _optional(prefsrc, length))
    return Route(*key, *attributes, nh_id, expires, rtm_flags, legs)


def _decode_nexthop(values: tuple[Any, ...], tail: bytes, order: str) -> Nexthop:
    number, oif, flags, family, proto, gw_family, blackhole, fdb, count, gw = values
    if not number:
        raise MalformedRecord("nexthop without an id")
    if family:
        _family_length(family)
    _check_tail(count, _MEMBER_SIZE, tail)
    members = tuple(Member(*pair) for pair in struct.iter_unpack(order + _MEMBER, tail))
    gateway = (gw_family, _gateway(gw_family, gw))
    return Nexthop(number, family, oif, flags, proto, *gateway, bool(blackhole), bool(fdb), members)


def _decode_loss(values: tuple[Any, ...], _tail: bytes, _order: str) -> Loss:
    return Loss(*values)


def _decode_dump(values: tuple[Any, ...], _tail: bytes, _order: str) -> Dump:
    scope, phase, *rest = values
    try:
        return Dump(Scope(scope), Phase(phase), *rest)
    except ValueError as error:
        raise MalformedRecord(f"dump record: {error}") from None


def _decode_rule(values: tuple[Any, ...], _tail: bytes, _order: str) -> Rule:
    table, priority, family, action = values
    _family_length(family)
    return Rule(family, priority, table, action)


def _decode_flush(values: tuple[Any, ...], _tail: bytes, _order: str) -> Flush:
    table, metric, oif, family, dst_len, tos, kind, dst = values
    length = _family_length(family)
    _check_prefix(dst_len, length)
    return Flush(family, table, metric, dst_len, _optional(dst, length), tos, kind, oif)


_DECODERS: dict[Kind, Callable[[tuple[Any, ...], bytes, str], Payload]] = {
    Kind.ADDR: _decode_addr,
    Kind.LINK: _decode_link,
    Kind.ROUTE: _decode_route,
    Kind.NEXTHOP: _decode_nexthop,
    Kind.LOSS: _decode_loss,
    Kind.DUMP: _decode_dump,
    Kind.RULE: _decode_rule,
    Kind.FLUSH: _decode_flush,
}


def _attribution(flags: int) -> str:
    # A thread of the kernel can be what a router advertisement interrupted.
    if flags & F_UNTRUSTED:
        return "untrusted"
    return "kernel" if flags & F_KERNEL else "process"


def _family_length(family: int) -> int:
    length = _LENGTH.get(family)
    if length is None:
        raise MalformedRecord(f"family {family}, allowed: {AF_INET}, {AF_INET6}")
    return length


def _check_prefix(prefixlen: int, length: int) -> None:
    if prefixlen > length * 8:
        raise MalformedRecord(f"prefix length {prefixlen}, at most {length * 8}")


def _check_tail(count: int, size: int, tail: bytes) -> None:
    if count > LEGS_MAX or count * size != len(tail):
        raise MalformedRecord(f"{count} legs or members in {len(tail)} bytes")


def _optional(field: bytes, length: int) -> bytes:
    return b"" if field == _EMPTY else field[:length]


def _gateway(gw_family: int, field: bytes) -> bytes:
    return field[: _LENGTH[gw_family]] if gw_family in _LENGTH else b""


def _name(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _terminated(field: bytes) -> str:
    if field[-1]:
        raise MalformedRecord("a name of a link does not end")
    return _name(field)


NO_NAMES: Callable[[int], str] = "if{}".format
"""Names of links where none are known: "if4"."""


def describe(record: Record, name_of: Callable[[int], str] = NO_NAMES) -> str:
    """The record in one line, for example "RTM_NEWADDR 192.0.2.10/24 bond0".

    `name_of` gives the name of a link by ifindex.
    """
    p = record.payload
    if isinstance(p, Loss):
        return _describe_loss(p)
    if isinstance(p, Dump):
        return _describe_dump(p, name_of)
    if isinstance(p, Flush):
        return f"silent removal of route {_describe_flush(p, name_of)}"
    message = f"RTM_{record.header.op.name}{_MESSAGE[record.kind]}"
    if isinstance(p, Addr):
        peer = f" peer {text(p.peer)}" if p.peer else ""
        return f"{message} {text(p.local)}{peer}/{p.prefixlen} {name_of(p.ifindex)}"
    if isinstance(p, Link):
        return f"{message} {p.name or name_of(p.ifindex)}"
    if isinstance(p, Nexthop):
        return f"{message} id {p.id}{_describe_hop(p, name_of)}"
    if isinstance(p, Rule):
        return f"{message} {_describe_rule(p)}"
    return f"{message} {_describe_route(p, name_of)}"


_MESSAGE = {
    Kind.ADDR: "ADDR",
    Kind.LINK: "LINK",
    Kind.ROUTE: "ROUTE",
    Kind.NEXTHOP: "NEXTHOP",
    Kind.RULE: "RULE",
}
_LOSS_CAUSES = frozenset(LossCause)
_TABLE_MAIN = 254
_UNICAST = 1
_TYPE_NAMES = {6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw"}


def _destination(p: Route | Flush) -> list[str]:
    words = [] if p.type == _UNICAST else [_TYPE_NAMES.get(p.type, f"type {p.type}")]
    zero = bytes(_LENGTH[p.family])
    return [*words, f"{text(p.dst or zero)}/{p.dst_len}" if p.dst_len else "default"]


def _describe_route(p: Route, name_of: Callable[[int], str]) -> str:
    words = _destination(p)
    if p.nh_id:
        words.append(f"nhid {p.nh_id}")
    for leg in p.legs:
        words += ["via", text(leg.gw)] if leg.gw else []
        words += ["dev", name_of(leg.oif)] if leg.oif else []
    words += ["src", text(p.prefsrc)] if p.prefsrc else []
    words += ["metric", str(p.metric)] if p.metric else []
    words += ["table", str(p.table)] if p.table != _TABLE_MAIN else []
    return " ".join(words)


def _describe_flush(p: Flush, name_of: Callable[[int], str]) -> str:
    words = _destination(p)
    words += ["dev", name_of(p.oif)] if p.oif else []
    words += ["metric", str(p.metric)] if p.metric else []
    words += ["table", str(p.table)] if p.table != _TABLE_MAIN else []
    return " ".join(words)


def _describe_rule(p: Rule) -> str:
    """As ip rule orders them; which packets a rule takes is not in the record."""
    words = ["ipv6"] if p.family == AF_INET6 else []
    words += ["priority", str(p.priority)]
    words += ["table", str(p.table)] if p.table else []
    return " ".join(words)


def _describe_hop(p: Nexthop, name_of: Callable[[int], str]) -> str:
    if p.members:
        return " group " + "/".join(str(member.id) for member in p.members)
    via = f" via {text(p.gw)}" if p.gw else ""
    dev = f" dev {name_of(p.oif)}" if p.oif else ""
    return f"{via}{dev} blackhole" if p.blackhole else f"{via}{dev}"


def _describe_loss(p: Loss) -> str:
    cause = LossCause(p.cause).name.lower() if p.cause in _LOSS_CAUSES else f"cause {p.cause}"
    return f"messages lost ({cause})"


def _describe_dump(p: Dump, name_of: Callable[[int], str]) -> str:
    words = ["audit" if p.flags & DUMP_AUDIT else "dump", "of", p.scope.name.lower()]
    words += [name_of(p.ifindex)] if p.ifindex else []
    words += ["table", str(p.table)] if p.table else []
    return " ".join([*words, {1: "begins", 2: "ends", 3: "failed"}[p.phase]])
