/* SPDX-License-Identifier: Apache-2.0 */
/* What netlink.c, events.c, feed.c, dump.c and tap.c share. */
#ifndef ADDRTRACKER_SOURCE_H
#define ADDRTRACKER_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

#include "netlink.h"

/* A datagram: the largest known, a link with hundreds of virtual functions, has 40 KiB. */
#define AT_DATAGRAM_MAX (64 * 1024)

/* More than any socket buffer or ring holds: what was queued when we began has been read then. */
#define AT_CATCH_UP_LIMIT (1u << 17)

#define AT_ALL_SCOPES ((1u << AT_SCOPES) - 1)
#define AT_RULES      (1u << AT_SCOPES) /* of a loss: policy rules, which nothing dumps */

/* Bytes of whole records, oldest first. */
struct at_tap {
	uint8_t *ring;
	size_t size;
	size_t head; /* offset of the oldest byte */
	size_t used;
};

/* 0 = it did not fit. */
int at_tap_push(struct at_tap *tap, const void *record, size_t size);

struct at_source {
	struct at_engine *engine;
	int sock; /* multicast */
	int wake_fd;
	int timer_fd;
	uint64_t armed; /* deadline of the timer, UINT64_MAX = none */
	uint32_t seq;
	int prompt;	      /* the kernel was told that we want to be let in soon */
	uint32_t awake;	      /* reads without a look at the socket */
	uint64_t lookups;     /* at_engine_lookups() and at_engine_vrfs() that were told */
	int congested;	      /* the kernel drops what comes until the queue was empty once */
	struct at_feed *feed; /* of the BPF tier; NULL: messages come through the socket */
	struct at_tap tap;
	struct at_source_counters counters;
	uint64_t record[(AT_RECORD_MAX + 7) / 8]; /* the one that is being built */
	uint8_t events[AT_DATAGRAM_MAX];
	uint8_t dump[AT_DATAGRAM_MAX];
};

/* Messages of one datagram. */
struct at_messages {
	const uint8_t *next;
	size_t left;
};

/* 1: *head and *msg are the next one; 0: no more; -EBADMSG: a length that does not fit. */
int at_message_next(struct at_messages *messages, struct nlmsghdr *head, const uint8_t **msg);

/* Numbers the record, applies it and copies it to the tap. -EINVAL: the engine refused it;
 * -ENOMEM: it took every scope for lost. */
int at_source_emit(struct at_source *s, void *record);

/* What became of a message. */
enum at_fate {
	AT_FATE_DROPPED, /* it is not for us */
	AT_FATE_EMITTED,
	AT_FATE_LOST, /* malformed, or no memory; the loss has been applied */
};

/* Makes a record of one message of whole length and applies it. `flags` for the header; task NULL:
 * not known. */
enum at_fate at_source_take(struct at_source *s, const struct nlmsghdr *head, const uint8_t *msg,
			    uint64_t boot_ns, uint32_t flags, const struct at_task *task);
/* The place of a type in the counters. */
unsigned at_type_of(const struct nlmsghdr *head);
/* Applies a loss of `count` messages, 0 = unknown. */
void at_source_lose(struct at_source *s, enum at_loss_cause cause, uint32_t scopes, uint64_t count);
/* Counts the application of one event. */
void at_source_applied(struct at_source *s, uint64_t ns);
/* Reads all that is queued now. */
int at_source_catch_up(struct at_source *s);

/* events.c: reads the socket: at most `limit` datagrams, but to the end after an overrun. 0 or
 * -errno. */
int at_socket_read(struct at_source *s, unsigned limit);

/* feed.c */
void at_feed_close(struct at_feed *f); /* with its descriptors */
/* Tells the kernel of new policies, and reads the ring: `limit` records and some. 0 or -errno. */
int at_feed_read(struct at_source *s, unsigned limit);
/* Before a wait: tells the kernel which links wake us. 1: read again, there may be something that
 * woke nobody; else 0. */
int at_feed_watch(struct at_source *s);
/* Messages did not pass the program: it is told to take nothing for known any more. */
void at_feed_forget(struct at_feed *f);
/* What a wait has to look at beside the socket. */
int at_feed_ring(const struct at_feed *f);
int at_feed_alarm(const struct at_feed *f);
/* From any thread. */
void at_feed_counters(const struct at_feed *f, struct at_source_counters *out);

#endif
