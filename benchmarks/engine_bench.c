// SPDX-License-Identifier: Apache-2.0
/*
 * How long the engine takes from a record to the best candidate.
 *
 * Prints one line of JSON per measurement: name, mode of the policy, n (addresses of the host, or of
 * the link that changed), what was timed, median_ns and p99_ns. A sample is a batch of operations between two
 * readings of the clock, divided by their number; what a batch of nothing takes is taken off.
 * Usage: engine_bench [SAMPLES]
 */
#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"

#define BATCH	   16
#define LOWER_UP   (1u << 16)
#define PER_LINK   100
#define MAIN_TABLE 254

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

static uint64_t now = 1000000000ull;

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

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

static struct route_record route(int op, uint32_t ifindex, uint32_t metric)
{
	struct route_record r = { header(AT_KIND_ROUTE, op, sizeof(r)), { 0 } };
	struct at_route p = {
		.table = MAIN_TABLE,
		.metric = metric,
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

static void apply(struct at_engine *e, const void *record)
{
	const struct at_header *h = record;

	if (at_engine_apply(e, record, h->size) != 1) {
		fprintf(stderr, "engine_bench: a record was refused\n");
		exit(1);
	}
}

enum mode {
	DEFAULT_ROUTE,
	INTERFACE,
	CIDR,
	HINT,
	ROUTE_TO,
	MODES
};

static const char *const mode_names[MODES] = { "default-route", "interface", "cidr", "hint",
					       "route-to" };

/* Of all policies from now on. */
static enum mode mode;

static void set_mode(struct at_policy *p)
{
	static const char names[][AT_PATTERN_LEN] = { "bond0", "eth2", "eth*" };
	static const struct at_network networks[] = {
		{ AF_INET, 16, { 192, 168 } },
		{ AF_INET, 12, { 172, 16 } },
		{ AF_INET, 24, { 10 } },
		{ AF_INET, 8, { 10 } },
	};
	static const struct at_network hint = { AF_INET, 32, { 10, 0, 0, 99 } };
	static const struct at_network source = { AF_INET, 32, { 10 } };

	if (mode == INTERFACE) {
		p->mode_names = names;
		p->n_mode_names = 3;
	} else if (mode == CIDR) {
		p->mode_networks = networks;
		p->n_mode_networks = 4;
	} else if (mode == HINT) {
		p->hints = &hint;
		p->n_hints = 1;
	} else if (mode == ROUTE_TO) {
		p->mode_networks = &source;
		p->n_mode_networks = 1;
	}
	p->mode = mode == DEFAULT_ROUTE || mode == HINT ? AT_MODE_DEFAULT_ROUTE : AT_MODE_LIST;
	p->fallback = mode == DEFAULT_ROUTE ? AT_FALLBACK_AUTO : AT_FALLBACK_DEFAULT_ROUTE;
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
		fprintf(stderr, "engine_bench: the policy was refused\n");
		exit(1);
	}
}

/* `n` addresses, `per_link` on each link; defaults over the first and the last link. */
static struct at_engine *host(uint32_t n, uint32_t per_link)
{
	static const struct at_network targets[] = { { AF_INET, 32, { 203, 0, 113, 7 } },
						     { AF_INET, 32, { 198, 51, 100, 7 } } };
	struct at_engine *e = at_engine_new();
	uint32_t links = (n + per_link - 1) / per_link, i;
	struct link_record l;
	struct addr_record a;
	struct route_record r;

	set_policy(e);
	if (mode == ROUTE_TO)
		at_engine_set_targets(e, targets, 2);
	for (i = 0; i < links; i++) {
		l = link_up(2 + i, true);
		apply(e, &l);
	}
	for (i = 0; i < n; i++) {
		a = addr(AT_OP_NEW, 2 + i / per_link, i, IFA_F_PERMANENT);
		apply(e, &a);
	}
	r = route(AT_OP_NEW, 2, 100);
	apply(e, &r);
	r = route(AT_OP_NEW, 1 + links, 200);
	apply(e, &r);
	at_engine_set_incumbent(e, 0, AF_INET, (const uint8_t[]){ 10, 0, 0, 0 });
	at_engine_changed(e);
	return e;
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return a < b ? -1 : a > b;
}

static void report(const char *name, uint32_t n, const char *per, double *sample, size_t count)
{
	qsort(sample, count, sizeof(*sample), by_value);
	printf("{\"name\": \"%s\", \"mode\": \"%s\", \"n\": %u, \"per\": \"%s\", "
	       "\"median_ns\": %.1f, \"p99_ns\": %.1f}\n",
	       name, mode_names[mode], n, per, sample[count / 2], sample[count * 99 / 100]);
	fflush(stdout);
}

/* What two readings of the clock cost. */
static double overhead(void)
{
	double sample[1001];
	uint64_t start;
	size_t i;

	for (i = 0; i < 1001; i++) {
		start = clock_ns();
		sample[i] = clock_ns() - start;
	}
	qsort(sample, 1001, sizeof(*sample), by_value);
	return sample[500];
}

/* Batches of prepared address records, each to the best candidate. `told`: until it is known what
 * changed for whom. */
static void addresses(const char *name, uint32_t n, size_t samples, bool best, bool told,
		      void (*prepare)(struct addr_record *r, uint32_t i, uint32_t number))
{
	struct at_engine *e = host(n, PER_LINK);
	double *sample = calloc(samples, sizeof(*sample)), cost = overhead();
	struct addr_record batch[BATCH];
	uint64_t start;
	uint32_t i, number = 0;
	size_t s;

	for (s = 0; s < samples; s++) {
		for (i = 0; i < BATCH; i++) {
			if (!(i & 1))
				number = best ? 0 : random_below(n);
			prepare(&batch[i], i, number);
		}
		start = clock_ns();
		for (i = 0; i < BATCH; i++) {
			apply(e, &batch[i]);
			if (told)
				at_engine_changed(e);
		}
		sample[s] = (clock_ns() - start - cost) / BATCH;
	}
	report(name, n, "record", sample, samples);
	free(sample);
	at_engine_free(e);
}

static void flip_flags(struct addr_record *r, uint32_t i, uint32_t number)
{
	*r = addr(AT_OP_NEW, 2 + number / PER_LINK, number,
		  IFA_F_PERMANENT | (i & 1 ? 0 : IFA_F_DEPRECATED));
}

static void delete_add(struct addr_record *r, uint32_t i, uint32_t number)
{
	*r = addr(i & 1 ? AT_OP_NEW : AT_OP_DEL, 2 + number / PER_LINK, number, IFA_F_PERMANENT);
}

/* One record that touches all addresses of a link: each pair undoes itself. */
static void bulk(const char *name, uint32_t k, size_t samples, const void *first,
		 const void *second)
{
	struct at_engine *e = host(k, k);
	double *sample = calloc(2 * samples, sizeof(*sample)), cost = overhead();
	uint64_t start;
	size_t s;

	for (s = 0; s < 2 * samples; s++) {
		start = clock_ns();
		apply(e, s & 1 ? second : first);
		at_engine_changed(e);
		sample[s] = (clock_ns() - start - cost) / k;
	}
	report(name, k, "address", sample, 2 * samples);
	free(sample);
	at_engine_free(e);
}

/* What may change on a host of so many addresses. */
static void changes(uint32_t n, size_t samples)
{
	addresses("address flags", n, samples, false, false, flip_flags);
	addresses("address delete and add", n, samples, false, false, delete_add);
	addresses("best address flags", n, samples, true, false, flip_flags);
	addresses("best address delete and add", n, samples, true, false, delete_add);
}

/* What may change all addresses of a link that has so many. */
static void bulks(uint32_t n, size_t samples)
{
	struct link_record down = link_up(2, false), up = link_up(2, true);
	struct route_record gone = route(AT_OP_DEL, 2, 100), back = route(AT_OP_NEW, 2, 100);

	bulk("link carrier", n, samples, &down, &up);
	bulk("default route", n, samples, &gone, &back);
}

int main(int argc, char **argv)
{
	static const uint32_t hosts[] = { 1000, 10000, 100000 }, links[] = { 100, 1000, 10000 };
	size_t samples = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	size_t i;

	if (samples < 100) {
		fprintf(stderr, "usage: engine_bench [SAMPLES, at least 100]\n");
		return 2;
	}
	for (i = 0; i < 3; i++) {
		changes(hosts[i], samples);
		addresses("best address flags, told", hosts[i], samples, true, true, flip_flags);
	}
	for (i = 0; i < 3; i++)
		bulks(links[i], samples / 100);
	for (mode = INTERFACE; mode < MODES; mode++) {
		changes(1000, samples);
		bulks(1000, samples / 100);
	}
	return 0;
}
