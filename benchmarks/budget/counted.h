/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of the engine, each for a fixed input, so that what is executed can be counted.
 *
 * Callgrind looks at nothing but a path, and dumps what it saw behind each.
 * Nothing that a path meets depends on the machine: time, the kernel and what libc does in its own
 * way on each processor are in apart.c.
 */
#ifndef ADDRTRACKER_COUNTED_H
#define ADDRTRACKER_COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

#define PER_LINK   100
#define FIRST_LINK 2
#define NEXTHOP_ID 1
#define MAIN_TABLE 254

struct path {
	const char *name;
	const char *mode; /* NULL: it has none */
	uint32_t n;	  /* how large the host or the link is, 0: nothing grows */
	uint32_t units;	  /* records, addresses, entries: what is counted is for each of them */
	bool event;	  /* it must not allocate */
};

/* Runs it once, counted. */
void count(const struct path *p, void (*run)(void *arg), void *arg);
/* Ends the program where something is not as it has to be. */
void must(bool condition, const char *what);

/* host.c: hosts in one of the modes, and changes */
struct made { /* any record */
	struct at_header h;
	uint8_t body[96];
};

unsigned host_modes(void);
const char *host_mode(unsigned which);
/* `n` addresses, `per_link` on each link; defaults over the first and the last link. */
struct at_engine *host_new(unsigned which, uint32_t n, uint32_t per_link);
/* Dumps every scope as it is: nothing is in doubt any more. */
void host_clean(struct at_engine *e);
/* Sets the policy once more. */
void host_rank(struct at_engine *e, unsigned which);
void made_apply(struct at_engine *e, const struct made *r);
void made_stamp(struct made *r); /* as seen now, behind all before it */
struct made made_addr(int op, uint32_t ifindex, uint32_t number, uint32_t flags);
struct made made_link(uint32_t ifindex, bool carrier, uint32_t mtu);
/* Over a link, or over the object nh_id where that is not 0. */
struct made made_default(int op, uint32_t ifindex, uint32_t metric, uint32_t nh_id);
struct made made_nexthop(uint32_t ifindex); /* the object NEXTHOP_ID */

/* messages.c: what the kernel says, in netlink's form */
struct message {
	uint64_t words[256]; /* aligned as in a buffer of the source */
	size_t size;
	size_t last; /* where its last attribute is */
};

void message_begin(struct message *m, uint16_t type, const void *body, size_t size);
void message_put(struct message *m, uint16_t type, const void *data, size_t size);
/* The last attribute claims a byte more than there is. */
void message_spoil(struct message *m);
void message_addr(struct message *m, int op, uint32_t ifindex, uint32_t number, uint32_t flags);
void message_default(struct message *m, uint32_t ifindex, uint32_t metric);
void message_route(struct message *m, int family, uint32_t number);

/* apart.c: the kernel's part */
struct datagram {
	const uint8_t *data;
	size_t size;
};

/* What the multicast socket holds, and what the next dump is answered with. */
void kernel_says(int multicast, const struct datagram *events, size_t n);
void kernel_answers(const struct datagram *answer, size_t n);

/* The paths. */
void parse_paths(void);
void change_paths(unsigned mode, uint32_t n);
void bulk_paths(unsigned mode, uint32_t n);
void whole_paths(uint32_t n);
void dump_paths(uint32_t n);
void default_paths(void);
void event_paths(void);
void ring_paths(void);

#endif
