// SPDX-License-Identifier: Apache-2.0
/*
 * How long the engine takes from a record to the best candidate, and what it keeps in memory.
 *
 * Prints one line of JSON per measurement. Times: name of the change, `over` what it was repeated,
 * n of those, mode of the policy, median_ns and p99_ns of one change. A sample is a batch of changes
 * between two readings of the clock, divided by their number; what a batch of nothing takes is taken
 * off. Over "addresses" (of the host, PER_LINK on each link), "link addresses" (all of the host's are
 * on the link that changes), "links" and "default routes". Memory: name, n, bytes that the allocator
 * gave out for them.
 * Usage: engine_bench [SAMPLES]
 */
#include <malloc.h>
#include <time.h>

#include "engine_host.h"

#define BATCH	    16
#define OTHER_LINKS 1000000

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
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

static double overhead; /* of two readings of the clock */

static void measure_overhead(void)
{
	double sample[1001];
	uint64_t start;
	size_t i;

	for (i = 0; i < 1001; i++) {
		start = clock_ns();
		sample[i] = clock_ns() - start;
	}
	qsort(sample, 1001, sizeof(*sample), by_value);
	overhead = sample[500];
}

static void report(const char *name, const char *over, uint32_t n, double *sample, size_t count)
{
	qsort(sample, count, sizeof(*sample), by_value);
	printf("{\"name\": \"%s\", \"over\": \"%s\", \"n\": %u, \"mode\": \"%s\", "
	       "\"median_ns\": %.1f, \"p99_ns\": %.1f}\n",
	       name, over, n, mode_names[mode], sample[count / 2], sample[count * 99 / 100]);
	fflush(stdout);
}

/* Batches of prepared address records, each to the best candidate. `told`: until it is known what
 * changed for whom. */
static void addresses(struct at_engine *e, const char *name, uint32_t n, size_t samples, bool best,
		      bool told,
		      void (*prepare)(struct addr_record *r, uint32_t i, uint32_t number))
{
	double *sample = calloc(samples, sizeof(*sample));
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
		sample[s] = (clock_ns() - start - overhead) / BATCH;
	}
	report(name, "addresses", n, sample, samples);
	free(sample);
}

static void flip_flags(struct addr_record *r, uint32_t i, uint32_t number)
{
	*r = addr(AT_OP_NEW, FIRST_LINK + number / PER_LINK, number,
		  IFA_F_PERMANENT | (i & 1 ? 0 : IFA_F_DEPRECATED));
}

static void delete_add(struct addr_record *r, uint32_t i, uint32_t number)
{
	*r = addr(i & 1 ? AT_OP_NEW : AT_OP_DEL, FIRST_LINK + number / PER_LINK, number,
		  IFA_F_PERMANENT);
}

/* Two records in turn, of which the second undoes the first, until it is known what changed. */
static void in_turn(struct at_engine *e, const char *name, const char *over, uint32_t n,
		    size_t samples, const void *first, const void *second)
{
	double *sample = calloc(2 * samples, sizeof(*sample));
	uint64_t start;
	size_t s;

	for (s = 0; s < 2 * samples; s++) {
		start = clock_ns();
		apply(e, s & 1 ? second : first);
		at_engine_changed(e);
		sample[s] = clock_ns() - start - overhead;
	}
	report(name, over, n, sample, 2 * samples);
	free(sample);
}

/* What touches all addresses of the link of the better default route. */
static void bulks(struct at_engine *e, const char *over, uint32_t n, size_t samples)
{
	struct link_record down = link_up(FIRST_LINK, false), up = link_up(FIRST_LINK, true);
	struct route_record gone = route(AT_OP_DEL, FIRST_LINK, 100);
	struct route_record back = route(AT_OP_NEW, FIRST_LINK, 100);
	struct route_record by_object = route_over(AT_OP_NEW, FIRST_LINK, 100, NEXTHOP);
	struct nexthop_record near = nexthop(FIRST_LINK, 1), far = nexthop(FIRST_LINK, 1u << 23);

	in_turn(e, "link carrier", over, n, samples, &down, &up);
	in_turn(e, "default route", over, n, samples, &gone, &back);
	/* Its gateway is another one, which is in no subnet of the host. */
	apply(e, &near);
	apply(e, &gone);
	apply(e, &by_object);
	in_turn(e, "nexthop object", over, n, samples, &far, &near);
	by_object = route_over(AT_OP_DEL, FIRST_LINK, 100, NEXTHOP);
	apply(e, &by_object);
	apply(e, &back);
}

static void whole_ranking(struct at_engine *e, uint32_t n, size_t samples)
{
	double *sample = calloc(samples, sizeof(*sample));
	uint64_t start;
	size_t s;

	for (s = 0; s < samples; s++) {
		start = clock_ns();
		set_policy(e);
		sample[s] = clock_ns() - start - overhead;
	}
	report("whole ranking", "addresses", n, sample, samples);
	free(sample);
}

static void changes(struct at_engine *e, uint32_t n, size_t samples)
{
	addresses(e, "address flags", n, samples, false, false, flip_flags);
	addresses(e, "address delete and add", n, samples, false, false, delete_add);
	addresses(e, "best address flags", n, samples, true, false, flip_flags);
	addresses(e, "best address delete and add", n, samples, true, false, delete_add);
	bulks(e, "addresses", n, samples / 100);
}

static void over_addresses(size_t samples)
{
	for (uint32_t n = 10; n <= 100000; n *= 10) {
		struct at_engine *e = host(n, PER_LINK);

		changes(e, n, samples);
		addresses(e, "best address flags, told", n, samples, true, true, flip_flags);
		whole_ranking(e, n, samples / (n < 10000 ? 100 : 400));
		at_engine_free(e);
	}
}

static void over_addresses_of_the_link(size_t samples)
{
	for (uint32_t n = 10; n <= 100000; n *= 10) {
		struct at_engine *e = host(n, n);

		bulks(e, "link addresses", n, samples / (n < 10000 ? 100 : 400));
		at_engine_free(e);
	}
}

/* Links of which nothing depends on, as containers have them; one more comes and goes. */
static void over_links(size_t samples)
{
	for (uint32_t n = 10; n <= 10000; n *= 10) {
		struct at_engine *e = host(PER_LINK, PER_LINK);
		struct link_record other = link_up(OTHER_LINKS + n, true), gone = other;

		add_links(e, OTHER_LINKS, n);
		gone.h.op = AT_OP_DEL;
		in_turn(e, "link comes or goes", "links", n, samples / 10, &other, &gone);
		at_engine_free(e);
	}
}

/* Of rising metric, over the same link. */
static void add_defaults(struct at_engine *e, uint32_t n)
{
	struct route_record r;

	for (uint32_t i = 0; i < n; i++) {
		r = route(AT_OP_NEW, FIRST_LINK, 1000 + i);
		apply(e, &r);
	}
}

static void over_default_routes(size_t samples)
{
	for (uint32_t n = 1; n <= 1000; n *= 10) {
		struct at_engine *e = host(PER_LINK, PER_LINK);
		struct route_record other = route(AT_OP_NEW, FIRST_LINK, 1000 + n), gone = other;

		add_defaults(e, n);
		gone.h.op = AT_OP_DEL;
		in_turn(e, "default route comes or goes", "default routes", n, samples / 100,
			&other, &gone);
		at_engine_free(e);
	}
}

static size_t allocated(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void report_memory(const char *name, uint32_t n, size_t before)
{
	printf("{\"name\": \"%s\", \"n\": %u, \"bytes\": %zu}\n", name, n, allocated() - before);
}

static void memory(void)
{
	for (uint32_t n = 10; n <= 100000; n *= 10) {
		struct at_engine *e = at_engine_new();
		size_t before;

		set_policy(e);
		add_links(e, FIRST_LINK, (n + PER_LINK - 1) / PER_LINK);
		before = allocated();
		add_addresses(e, n, PER_LINK);
		report_memory("addresses", n, before);
		at_engine_free(e);
	}
	for (uint32_t n = 10; n <= 10000; n *= 10) {
		struct at_engine *e = host(PER_LINK, PER_LINK);
		size_t before = allocated();

		add_links(e, OTHER_LINKS, n);
		report_memory("links", n, before);
		before = allocated();
		add_defaults(e, n / 10);
		report_memory("default routes", n / 10, before);
		at_engine_free(e);
	}
}

int main(int argc, char **argv)
{
	size_t samples = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000;

	if (samples < 1000) {
		fprintf(stderr, "usage: engine_bench [SAMPLES, at least 1000]\n");
		return 2;
	}
	measure_overhead();
	memory();
	over_addresses(samples);
	over_addresses_of_the_link(samples);
	over_links(samples);
	over_default_routes(samples);
	for (mode = INTERFACE; mode < MODES; mode++) {
		struct at_engine *e = host(1000, PER_LINK);

		changes(e, 1000, samples);
		at_engine_free(e);
	}
	return 0;
}
