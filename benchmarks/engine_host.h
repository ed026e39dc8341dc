/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of one family for engine_bench.c: records, policies of every mode, engines filled with both. */
#ifndef ENGINE_HOST_H
#define ENGINE_HOST_H

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define LOWER_UP   (1u << 16)
#define PER_LINK   100
#define MAIN_TABLE 254
#define FIRST_LINK 2
#define NEXTHOP	   1 /* the object of the better default route, where it is asked for */

struct addr_record {
	struct at_header h;
	struct at_addr p;
};

struct link_record {
	struct at_header h;
	struct at_link p;
};

struct route_record {
	struct at_header h;
	uint8_t body[sizeof(struct at_route) + sizeof(struct at_leg)];
};

struct nexthop_record {
	struct at_header h;
	struct at_nexthop p;
};

static uint64_t now = 1000000000ull;

static struct at_header header(int kind, int op, size_t size)
{
	now += 10000; /* as fast as the kernel makes changes */
	return (struct at_header){
		.size = size, .version = AT_RECORD_VERSION, .kind = kind, .op = op, .boot_ns = now
	};
}

static struct addr_record addr(int op, uint32_t ifindex, uint32_t number, uint32_t flags)
{
	struct addr_record r = { header(AT_KIND_ADDR, op, sizeof(r)), { 0 } };
	uint32_t local = htonl(0x0a000000u + number);

	r.p.ifindex = ifindex;
	r.p.flags = flags;
	r.p.family = AF_INET;
	r.p.prefixlen = 24;
	r.p.valid = r.p.preferred = UINT32_MAX;
	r.p.cstamp = 100 + number;
	memcpy(r.p.local, &local, sizeof(local));
	return r;
}

static struct link_record link_up(uint32_t ifindex, bool carrier)
{
	struct link_record r = { header(AT_KIND_LINK, AT_OP_NEW, sizeof(r)), { 0 } };

	r.p.ifindex = ifindex;
	r.p.flags = IFF_UP | (carrier ? LOWER_UP : 0);
	snprintf(r.p.name, sizeof(r.p.name), "eth%u", ifindex % 100000);
	return r;
}

static struct route_record route_over(int op, uint32_t ifindex, uint32_t metric, uint32_t nh_id)
{
	struct route_record r = { header(AT_KIND_ROUTE, op, sizeof(r)), { 0 } };
	struct at_route p = {
		.table = MAIN_TABLE,
		.metric = metric,
		.nh_id = nh_id,
		.family = AF_INET,
		.proto = RTPROT_STATIC,
		.type = RTN_UNICAST,
		.n_legs = 1,
	};
	struct at_leg leg = { .oif = ifindex, .weight = 1, .gw_family = AF_INET };
	uint32_t gw = htonl(0x0a000001u + ifindex * 256);

	memcpy(leg.gw, &gw, sizeof(gw));
	memcpy(r.body, &p, sizeof(p));
	memcpy(r.body + sizeof(p), &leg, sizeof(leg));
	return r;
}

static struct route_record route(int op, uint32_t ifindex, uint32_t metric)
{
	return route_over(op, ifindex, metric, 0);
}

static struct nexthop_record nexthop(uint32_t ifindex, uint32_t host)
{
	struct nexthop_record r = { header(AT_KIND_NEXTHOP, AT_OP_NEW, sizeof(r)), { 0 } };
	uint32_t gw = htonl(0x0a000000u + host);

	r.p.id = NEXTHOP;
	r.p.oif = ifindex;
	r.p.family = r.p.gw_family = AF_INET;
	memcpy(r.p.gw, &gw, sizeof(gw));
	return r;
}

static void apply(struct at_engine *e, const void *record)
{
	const struct at_header *h = record;

	if (at_engine_apply(e, record, h->size) != 1) {
		fprintf(stderr, "engine_host: a record was refused\n");
		exit(1);
	}
}

enum mode {
	DEFAULT_ROUTE,
	INTERFACE,
	CIDR,
	HINT,
	ROUTE_TO,
	DNS,
	STATIC,
	MODES
};

static const char *const mode_names[MODES] = { "default-route", "interface", "cidr",  "hint",
					       "route-to",	"dns",	     "static" };

/* Of all policies from now on. */
static enum mode mode;

static void list(struct at_policy *p, const struct at_network *networks, uint32_t n)
{
	p->mode_networks = networks;
	p->n_mode_networks = n;
}

/* As tracker/policy/compile.py makes them; in the modes route-to and dns, of what was found. */
static void set_mode(struct at_policy *p)
{
	static const char names[][AT_PATTERN_LEN] = { "bond0", "eth2", "eth*" },
			  all[][AT_PATTERN_LEN] = { "*" };
	static const struct at_network networks[] = {
		{ AF_INET, 16, { 192, 168 } },
		{ AF_INET, 12, { 172, 16 } },
		{ AF_INET, 24, { 10 } },
		{ AF_INET, 8, { 10 } },
	};
	static const struct at_network hint = { AF_INET, 32, { 10, 0, 0, 99 } };
	static const struct at_network named[] = {
		{ AF_INET, 32, { 10 } },
		{ AF_INET, 32, { 10, 0, 0, 7 } },
		{ AF_INET, 32, { 192, 0, 2, 7 } },
	};

	p->mode = mode == DEFAULT_ROUTE || mode == HINT ? AT_MODE_DEFAULT_ROUTE : AT_MODE_LIST;
	p->fallback = AT_FALLBACK_NONE;
	if (mode == DEFAULT_ROUTE) {
		p->fallback = AT_FALLBACK_AUTO;
	} else if (mode == INTERFACE) {
		p->mode_names = names;
		p->n_mode_names = 3;
	} else if (mode == CIDR) {
		list(p, networks, 4);
	} else if (mode == HINT) {
		p->fallback = AT_FALLBACK_DEFAULT_ROUTE;
		p->hints = &hint;
		p->n_hints = 1;
	} else if (mode == ROUTE_TO) {
		p->fallback = AT_FALLBACK_DEFAULT_ROUTE;
		list(p, named, 1);
	} else if (mode == DNS) {
		list(p, named, 3);
	} else {
		list(p, named, 2);
		p->keep_names = all;
		p->n_keep_names = 1;
	}
}

/* The default policy in the present mode, with lists as long as a cluster has them. */
static void set_policy(struct at_engine *e)
{
	static const uint8_t criteria[] = {
		AT_CRIT_STATIC,
		AT_CRIT_MODE,
		AT_CRIT_INTERNAL,
		AT_CRIT_DEFAULT_ROUTE,
		AT_CRIT_PREFSRC,
		AT_CRIT_NOT_DEPRECATED,
		AT_CRIT_NOT_VIP_LIKE,
		AT_CRIT_NOT_TEMPORARY,
		AT_CRIT_ASSIGNED,
		AT_CRIT_INCUMBENT,
		AT_CRIT_GATEWAY_ON_LINK,
		AT_CRIT_PRIMARY_FLAG,
		AT_CRIT_GLOBAL_BEFORE_ULA,
		AT_CRIT_NEXTHOP_WEIGHT,
		AT_CRIT_IFINDEX,
		AT_CRIT_AGE,
	};
	static const char names[][AT_PATTERN_LEN] = { "docker*", "cali*", "veth*", "cilium_*" };
	static const struct at_network exclude[] = {
		{ AF_INET, 16, { 172, 16 } },
		{ AF_INET, 16, { 172, 17 } },
		{ AF_INET, 32, { 192, 0, 2, 1 } },
	};
	struct at_policy p = { .families = 3, .table = MAIN_TABLE };

	set_mode(&p);
	memcpy(p.criteria, criteria, sizeof(criteria));
	p.n_criteria = sizeof(criteria);
	p.exclude_names = names;
	p.n_exclude_names = 4;
	p.exclude = exclude;
	p.n_exclude = 3;
	if (at_engine_set_policy(e, 0, &p)) {
		fprintf(stderr, "engine_host: the policy was refused\n");
		exit(1);
	}
}

static void add_links(struct at_engine *e, uint32_t from, uint32_t n)
{
	struct link_record l;

	for (uint32_t i = 0; i < n; i++) {
		l = link_up(from + i, true);
		apply(e, &l);
	}
}

static void add_addresses(struct at_engine *e, uint32_t n, uint32_t per_link)
{
	struct addr_record a;

	for (uint32_t i = 0; i < n; i++) {
		a = addr(AT_OP_NEW, FIRST_LINK + i / per_link, i, IFA_F_PERMANENT);
		apply(e, &a);
	}
}

/* As after a question about each target. */
static void set_grounds(struct at_engine *e, uint32_t last_link)
{
	struct at_grounds g = { .n_links = 2, .links = { FIRST_LINK, last_link }, .n_sources = 2 };

	g.sources[0] = (struct at_ground){ FIRST_LINK, AF_INET, .address = { 10, 0, 0, 0 } };
	g.sources[1] = (struct at_ground){ last_link, AF_INET, .address = { 10, 0, 0, 1 } };
	at_engine_set_grounds(e, &g);
}

/* `n` addresses, `per_link` on each link; defaults over the first and the last link. */
static struct at_engine *host(uint32_t n, uint32_t per_link)
{
	static const struct at_network targets[] = { { AF_INET, 32, { 203, 0, 113, 7 } },
						     { AF_INET, 32, { 198, 51, 100, 7 } } };
	struct at_engine *e = at_engine_new();
	uint32_t links = (n + per_link - 1) / per_link;
	struct route_record r;

	set_policy(e);
	if (mode == ROUTE_TO)
		at_engine_set_targets(e, targets, 2);
	add_links(e, FIRST_LINK, links);
	add_addresses(e, n, per_link);
	r = route(AT_OP_NEW, FIRST_LINK, 100);
	apply(e, &r);
	r = route(AT_OP_NEW, FIRST_LINK + links - 1, 200);
	apply(e, &r);
	at_engine_set_incumbent(e, 0, AF_INET, (const uint8_t[]){ 10, 0, 0, 0 });
	if (mode == ROUTE_TO)
		set_grounds(e, FIRST_LINK + links - 1);
	at_engine_changed(e);
	return e;
}

#endif
