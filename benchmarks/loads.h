/* SPDX-License-Identifier: Apache-2.0 */
/* The loads of load.c that need more than a few lines. Each prints its members of the object. */
#ifndef BENCHMARKS_LOADS_H
#define BENCHMARKS_LOADS_H

#include <stdbool.h>

#include "requests.h"

/* One route of a link; a host route. Numbers count from 0. */
struct nlmsghdr *route(bool add, int family, unsigned ifindex, unsigned number);
/* Seconds since a time of CLOCK_MONOTONIC. */
double since(uint64_t start);

void load_links(int sock, const char *name, unsigned count, const char *path);
void load_promotions(int sock, const char *link, unsigned count, const char *network,
		     unsigned hosts);
void load_fill(int sock, const char *name, unsigned links, unsigned addresses, unsigned routes);

#endif
