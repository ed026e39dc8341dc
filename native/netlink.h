/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rtnetlink: one multicast socket, strict dumps on sockets of their own, and one
 * parser for both. Feeds an engine and, where wanted, a tap (a copy of every
 * applied record, for recordings).
 */
#ifndef ADDRTRACKER_NETLINK_H
#define ADDRTRACKER_NETLINK_H

#include "bpf.h"
#include "engine.h"

/* Parses one netlink message (nlmsghdr first) into `out` (AT_RECORD_MAX bytes, aligned to 8).
 * > 0: size of the record; 0: nothing for us (other type, other family, cloned, local table,
 * a route that is over or for some sources only, a wireless event); -EBADMSG: malformed. Never reads beyond `len`. */
int at_parse(const void *msg, size_t len, uint64_t boot_ns, uint32_t flags, void *out);

enum at_wake {
	AT_WAKE_CHANGED = 1, /* at_engine_pending() is not 0 */
	AT_WAKE_DIRTY = 2,   /* a scope is dirty that was not when the wait began */
	AT_WAKE_TIMEOUT = 4,
	AT_WAKE_USER = 8,     /* at_source_wake(), or a signal */
	AT_WAKE_TAP = 16,     /* the tap holds records */
	AT_WAKE_LOOKUPS = 32, /* at_engine_lookups() or at_engine_vrfs() grew since that was told */
};

#define AT_SEEN_TYPES	 96 /* nlmsg_type - RTM_BASE; the last one is any other type */
#define AT_APPLY_BUCKETS 24

struct at_source_counters {
	/* Messages of the multicast socket, by type: seen = dropped + emitted + lost, but for one
	 * that is under way. */
	uint64_t seen[AT_SEEN_TYPES];
	uint64_t dropped[AT_SEEN_TYPES]; /* not relevant to any policy */
	uint64_t emitted[AT_SEEN_TYPES]; /* became a record */
	uint64_t lost[AT_SEEN_TYPES];	 /* malformed, or no room for the record */
	uint64_t malformed;
	uint64_t overruns;   /* ENOBUFS */
	uint64_t overrun;    /* messages that the kernel dropped for want of room */
	uint64_t unfiltered; /* messages that got past the filter */
	uint64_t tap_lost;   /* records that did not fit the tap */
	uint64_t ring_bytes; /* 0: no ring */
	uint64_t reordered;  /* records that came behind a newer one */
	struct at_traced traced;
	uint64_t apply_ns_sum;
	uint64_t apply_ns_bucket[AT_APPLY_BUCKETS]; /* [i]: at most 64 << i ns, the last one any;
						     * events only, from message to best candidate */
	uint64_t dumps[AT_SCOPES];
	uint64_t dump_failures[AT_SCOPES];
	uint64_t rcvbuf; /* bytes, as getsockopt tells: twice what was asked for */
};

struct at_source;

/* 0, or -errno. rcvbuf in bytes (SO_RCVBUFFORCE, else SO_RCVBUF). Every scope is lost until it is
 * dumped. The engine must outlive all calls but at_source_close. One thread uses a source; any
 * thread may call at_source_wake, and read counters that are then an event old. */
int at_source_open(struct at_engine *e, uint32_t rcvbuf, struct at_source **out);
/* From here on a program reads the messages, and writes what matters as records to a ring: once at
 * most, after at_bpf_place(). The source owns it and its maps, and closes them where this fails. 0 or -errno. */
int at_source_feed(struct at_source *s, const struct at_bpf *bpf);
void at_source_close(struct at_source *s);
/* Blocks until something is due: drains, applies, ranks. deadline_ns: CLOCK_BOOTTIME, UINT64_MAX =
 * none. Returns enum at_wake bits, or -errno when the socket is gone for good. */
int at_source_wait(struct at_source *s, uint64_t deadline_ns);
/* The same, and what at_engine_glance() says then where it returns AT_WAKE_CHANGED; else
 * out->changed is 0. */
int at_source_wait_glance(struct at_source *s, uint64_t deadline_ns, struct at_glance *out);
/* Drains what is queued without blocking; bits as above. */
int at_source_drain(struct at_source *s);
/* Strict dump of one scope: drain, begin, entries, drain, end. 0, or -errno (the fail mark was
 * applied); -EAGAIN: the kernel's lists changed under each of six attempts. */
int at_source_dump(struct at_source *s, uint32_t scope, uint32_t ifindex, uint32_t table,
		   uint32_t flags);
void at_source_wake(struct at_source *s); /* from any thread */
void at_source_counters(const struct at_source *s, struct at_source_counters *out);
int at_source_fd(const struct at_source *s); /* the multicast socket, for tests */

/* Tap: a ring of `size` bytes, 0 = none; read moves whole records and returns their bytes. */
int at_source_tap(struct at_source *s, size_t size);
size_t at_source_tap_read(struct at_source *s, void *buf, size_t max);

uint64_t at_boot_ns(void);
/* Moves this process into a network namespace: a name under /run/netns or a path. -errno. */
int at_netns_enter(const char *name);

#endif
