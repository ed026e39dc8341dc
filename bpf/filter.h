/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What the programs in the kernel and the source in user space share beside the
 * records: the maps and what is in them.
 *
 *   ring     ringbuf        records
 *   alarm    ringbuf, 1 page  eight zero bytes: "look at shared.lost"; wakes even where the ring
 *                             has no room, or its lock was not to be had
 *   counts   per-CPU array  struct at_count by nlmsg_type - RTM_BASE, the last one any other type
 *   shared   array of 1, mmapable  struct at_shared
 *   filters  array of maps, 1   the filter that counts; swapped whole when the policy changes
 *   filter0, filter1  arrays of 1  struct at_filter: one is in `filters`, the other is filled
 *   links    hash by ifindex  struct at_link as last written to the ring
 *   watched  hash by ifindex  links that a choice depends on: never quiet
 *   traced   per-CPU array of 1  struct at_traced (trace.bpf.c alone)
 */
#ifndef ADDRTRACKER_FILTER_H
#define ADDRTRACKER_FILTER_H

#include "records.h"

#define AT_TYPES	   96 /* RTM_BASE and what follows; the last one is any other type */
#define AT_TABLES_MAX	   16
#define AT_TARGETS_MAX	   16
#define AT_QUIET_NAMES_MAX 64
#define AT_QUIET_KINDS_MAX 16
#define AT_LINKS_MAX	   65536
#define AT_WATCHED_MAX	   4096

/* seen = dropped + emitted + lost, but for messages under way. */
struct at_count {
	__u64 seen;
	__u64 dropped; /* concerns no policy, or says nothing new */
	__u64 emitted; /* records in the ring */
	__u64 lost;    /* no room in the ring, or larger than any room */
};

struct at_shared {
	__u64 lost[8]; /* by enum at_scope: records that found no room; [AT_SCOPES]: rules */
};

/* Names compare as two words each: a name matches where (name & mask) == value. */
struct at_name_mask {
	__u64 value[2];
	__u64 mask[2];
};

struct at_target {
	__u8 family;
	__u8 pad[7];
	__u8 address[16];
};

struct at_filter {
	__u32 n_tables; /* tables whose default routes matter */
	/* Addresses whose covering routes matter, in any table; then rules do too. */
	__u32 n_targets;
	__u32 n_quiet_names, n_loud_names, n_quiet_kinds;
	__u32 pad0;
	__u32 tables[AT_TABLES_MAX];
	struct at_target targets[AT_TARGETS_MAX];
	/* Links that no selection can choose. Their changes are recorded as those of any link, for
	 * the state to be right, but wake nobody: they are read with whatever comes next. */
	struct at_name_mask quiet_names[AT_QUIET_NAMES_MAX];
	struct at_name_mask loud_names[AT_QUIET_NAMES_MAX]; /* win over quiet ones and kinds */
	char quiet_kinds[AT_QUIET_KINDS_MAX][AT_NAME_LEN];
};

/* Silent removals, as the trace tier sees them. */
struct at_traced {
	__u64 flushed;	  /* IPv4 routes of this namespace */
	__u64 unreported; /* of these: no record, the ring was half full */
	__u64 overruns;	  /* netlink_overrun() of any socket */
	__u64 pad0;
};

#endif
