// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * What the kernel does without a message: IPv4 routes that go with a link, an address, a nexthop
 * object or a VRF, and messages that found no room at a socket.
 *
 * fib_table_flush() removes the aliases whose fib_info is dead and calls fib_notify_alias_delete()
 * for each. fib_table_delete() calls it as well, but what a request deletes is never dead: whoever
 * marks a fib_info flushes the tables before anybody else gets the lock. So one look tells silent
 * removals from announced ones, and no state is kept. A fib_info that is dead because its preferred
 * source went is announced by newer kernels; those have the field pfsrc_removed.
 *
 * Each program is loaded by itself: a kernel may lack one function and have the other.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ptrace.h>
#include <linux/rtnetlink.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "filter.h"
#include "maps.h"
#include "task.h"

#define AF_INET 2

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct at_traced);
} traced SEC(".maps");

/* The network namespace that the source is in; 0 = any. */
const volatile __u32 netns;

/* Of the kernel's own structures only what is read here; their layout is the running kernel's. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct net_device {
	int ifindex;
};

struct fib_nh_common {
	struct net_device *nhc_dev;
};

struct fib_nh {
	struct fib_nh_common nh_common;
};

struct nexthop;

struct fib_info {
	unsigned int fib_flags;
	__u32 fib_priority;
	int fib_nhs;
	_Bool pfsrc_removed; /* 6.6 and stable kernels */
	struct nexthop *nh;
	struct fib_nh fib_nh[];
};

struct fib_alias {
	struct fib_info *fa_info;
	__u8 fa_dscp; /* 5.18 */
	__u8 fa_type;
	__u8 fa_slen;
	__u32 tb_id;
};

struct fib_alias___before_5_18 {
	__u8 fa_tos;
};

struct possible_net {
	struct net *net;
};

struct sock_common {
	struct possible_net skc_net;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

#pragma clang attribute pop

struct flush_record {
	struct at_header header;
	struct at_flush flush;
	struct at_task task;
};

static __always_inline struct at_traced *counts_of_this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&traced, &zero);
}

static __always_inline int is_here(const struct net *net)
{
	return !netns || BPF_CORE_READ(net, ns.inum) == netns;
}

static __always_inline const struct at_filter *find_filter(void)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&filters, &zero);

	return inner ? bpf_map_lookup_elem(inner, &zero) : 0;
}

static __always_inline int is_wanted(const struct at_filter *filter, __u32 table)
{
	for (__u32 i = 0; i < AT_TABLES_MAX; i++) {
		if (i >= filter->n_tables)
			break;
		if (filter->tables[i] == table)
			return 1;
	}
	return 0;
}

/* Whether a target lies in the prefix that begins with key and has all but `slen` bits of it. */
static __always_inline int covers_target(const struct at_filter *filter, __u32 key, __u32 slen)
{
	__u64 mask = ~0ull << (slen & 63);
	__u32 address;

	for (__u32 i = 0; i < AT_TARGETS_MAX; i++) {
		if (i >= filter->n_targets)
			break;
		__builtin_memcpy(&address, filter->targets[i].address, sizeof(address));
		if (filter->targets[i].family == AF_INET &&
		    !((bpf_ntohl(address) ^ key) & (__u32)mask))
			return 1;
	}
	return 0;
}

/* What the reader waits for: a default route that a policy may depend on, a way to a target. */
static __always_inline int may_matter(__u32 table, __u32 key, __u32 slen)
{
	const struct at_filter *filter = find_filter();

	return filter &&
	       ((slen == 32 && is_wanted(filter, table)) || covers_target(filter, key, slen));
}

/* The reader compares the number at its next look, to which the other ring wakes it. */
static __always_inline void lose(void)
{
	struct at_shared *lost;
	__u32 zero = 0;
	__u64 nothing = 0;

	lost = bpf_map_lookup_elem(&shared, &zero);
	if (!lost)
		return;
	__sync_fetch_and_add(&lost->lost[AT_SCOPE_ROUTE4], 1);
	bpf_ringbuf_output(&alarm, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void fill_flush(struct at_flush *flush, const struct fib_alias *alias,
				       const struct fib_info *info, __u32 key)
{
	const struct fib_alias___before_5_18 *old = (const void *)alias;
	__be32 dst = bpf_htonl(key);

	flush->table = BPF_CORE_READ(alias, tb_id);
	flush->metric = BPF_CORE_READ(info, fib_priority);
	/* With a nexthop object there is no leg here. */
	if (!BPF_CORE_READ(info, nh) && BPF_CORE_READ(info, fib_nhs) > 0)
		flush->oif = BPF_CORE_READ(info, fib_nh[0].nh_common.nhc_dev, ifindex);
	flush->family = AF_INET;
	flush->dst_len = 32 - BPF_CORE_READ(alias, fa_slen);
	if (bpf_core_field_exists(alias->fa_dscp))
		flush->tos = BPF_CORE_READ(alias, fa_dscp);
	else
		flush->tos = BPF_CORE_READ(old, fa_tos);
	flush->type = BPF_CORE_READ(alias, fa_type);
	__builtin_memcpy(flush->dst, &dst, sizeof(dst));
}

static __always_inline void report(const struct net *net, __u32 key, const struct fib_alias *alias)
{
	const struct fib_info *info = BPF_CORE_READ(alias, fa_info);
	struct flush_record *record;
	struct at_traced *count;
	__u32 table;
	int matters;

	if (!is_here(net) || !(BPF_CORE_READ(info, fib_flags) & RTNH_F_DEAD))
		return;
	if (bpf_core_field_exists(info->pfsrc_removed) && BPF_CORE_READ(info, pfsrc_removed))
		return;
	table = BPF_CORE_READ(alias, tb_id);
	if (table == RT_TABLE_LOCAL)
		return;
	count = counts_of_this_cpu();
	if (!count)
		return;
	__sync_fetch_and_add(&count->flushed, 1);

	matters = may_matter(table, key, BPF_CORE_READ(alias, fa_slen));
	if (!matters && bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
				bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2) {
		__sync_fetch_and_add(&count->unreported, 1);
		return;
	}
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&count->unreported, 1);
		if (matters)
			lose();
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->header.size = sizeof(*record);
	record->header.version = AT_RECORD_VERSION;
	record->header.kind = AT_KIND_FLUSH;
	record->header.op = AT_OP_DEL;
	record->header.boot_ns = bpf_ktime_get_boot_ns();
	fill_flush(&record->flush, alias, info, key);
	record->header.flags = read_task(&record->task);
	/* Not an adaptive wake-up: there may be records in front that woke nobody. */
	bpf_ringbuf_submit(record, matters ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void overrun(const struct sock *sk)
{
	struct at_traced *count;

	if (BPF_CORE_READ(sk, sk_protocol) != 0 /* NETLINK_ROUTE */ ||
	    !is_here(BPF_CORE_READ(sk, __sk_common.skc_net.net)))
		return;
	count = counts_of_this_cpu();
	if (count)
		__sync_fetch_and_add(&count->overruns, 1);
}

/* net, key, list, alias */
SEC("fentry/fib_notify_alias_delete")
int fentry_flush(const __u64 *ctx)
{
	report((const void *)ctx[0], ctx[1], (const void *)ctx[3]);
	return 0;
}

SEC("kprobe/fib_notify_alias_delete")
int kprobe_flush(struct pt_regs *ctx)
{
	report((const void *)PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx),
	       (const void *)PT_REGS_PARM4(ctx));
	return 0;
}

SEC("fentry/netlink_overrun")
int fentry_overrun(const __u64 *ctx)
{
	overrun((const void *)ctx[0]);
	return 0;
}

SEC("kprobe/netlink_overrun")
int kprobe_overrun(struct pt_regs *ctx)
{
	overrun((const void *)PT_REGS_PARM1(ctx));
	return 0;
}

/* For a kernel without BTF: a number for all namespaces, local and announced routes among them. */
SEC("kretprobe/fib_table_flush")
int kretprobe_count(struct pt_regs *ctx)
{
	struct at_traced *count = counts_of_this_cpu();
	int removed = PT_REGS_RC(ctx);

	if (count && removed > 0)
		__sync_fetch_and_add(&count->flushed, removed);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
