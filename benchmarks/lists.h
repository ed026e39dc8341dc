/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has, by strict dumps: every entry, taken apart into what an answer needs. */
#ifndef BENCHMARKS_LISTS_H
#define BENCHMARKS_LISTS_H

#include <stdbool.h>

#include <net/if.h>

#include "requests.h"

struct link_row {
	int ifindex;
	unsigned flags;
	char name[IFNAMSIZ];
};

struct address_row {
	struct inet inet;
	unsigned ifindex;
	uint32_t flags;
};

struct route_row {
	struct inet to;
	uint8_t gateway[16];
	uint32_t oif; /* of the first gateway */
	uint32_t metric;
	uint32_t nexthop;
};

struct nexthop_row {
	uint32_t id;
	uint32_t oif;
	uint8_t gateway[16];
};

struct rule_row {
	int family;
	uint32_t priority;
	uint32_t table;
};

struct list {
	void *rows;
	size_t n;
	size_t room;
};

struct lists {
	struct list links;
	struct list addresses;
	struct list routes; /* of the main table */
	struct list nexthops;
	struct list rules;
};

int list_socket(void);
void lists_clear(struct lists *lists);
/* Each adds to what is there, and returns false where the kernel's own list changed under it. */
bool list_links(int sock, struct lists *into);
bool list_addresses(int sock, struct lists *into, int family);
bool list_routes(int sock, struct lists *into, int family);
bool list_nexthops(int sock, struct lists *into);
bool list_rules(int sock, struct lists *into, int family);

#endif
