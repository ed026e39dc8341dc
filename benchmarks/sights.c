// SPDX-License-Identifier: Apache-2.0
#include "sights.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/sock_diag.h>
#include <sys/socket.h>

#define SIGHTS_MAX 200000
#define KNOWN_MAX  4096 /* a power of two; addresses, of which a quarter stays free */

struct known {
	uint8_t address[16];
	bool used;
	bool there;
	uint32_t list; /* the last one that it was in */
};

struct sight {
	uint64_t boot_ns;
	const struct known *of;
	bool there;
};

uint64_t messages;

static struct inet network;
static struct known known[KNOWN_MAX];
static size_t n_known;
static uint32_t list = 1;
static struct sight sights[SIGHTS_MAX];
static size_t n_sights;
static int lossy = -1;
static sigset_t end;

void sights_of(const char *text)
{
	network = parse_inet(text);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
}

static bool is_watched(int family, const uint8_t *address)
{
	size_t whole = network.prefixlen / 8, rest = network.prefixlen % 8;

	return family == network.family && !memcmp(address, network.bytes, whole) &&
	       (!rest || (address[whole] ^ network.bytes[whole]) >> (8 - rest) == 0);
}

static struct known *find(const uint8_t *address)
{
	size_t size = inet_size(network.family);
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ address[i]) * 16777619u;
	for (;; hash++) {
		struct known *at = &known[hash % KNOWN_MAX];

		if (at->used && !memcmp(at->address, address, size))
			return at;
		if (at->used)
			continue;
		if (++n_known > KNOWN_MAX / 4 * 3)
			die("addresses", E2BIG);
		at->used = true;
		memcpy(at->address, address, size);
		return at;
	}
}

static void note(struct known *at, bool there)
{
	if (at->there == there)
		return;
	if (n_sights == SIGHTS_MAX)
		die("sights", E2BIG);
	at->there = there;
	sights[n_sights++] = (struct sight){ clock_ns(CLOCK_BOOTTIME), at, there };
}

void sights_saw(int family, const void *address, bool there)
{
	if (is_watched(family, address))
		note(find(address), there);
}

void sights_list(int family, const void *address)
{
	struct known *at;

	if (!is_watched(family, address))
		return;
	at = find(address);
	at->list = list;
	note(at, true);
}

void sights_listed(void)
{
	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (known[i].there && known[i].list != list)
			note(&known[i], false);
	list++;
}

static void print_number(const char *name, bool is, uint64_t value)
{
	if (is)
		printf("\"%s\": %llu, ", name, (unsigned long long)value);
	else
		printf("\"%s\": null, ", name);
}

static void report(void)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(memory);

	if (lossy >= 0 && getsockopt(lossy, SOL_SOCKET, SO_MEMINFO, memory, &size) < 0)
		die("SO_MEMINFO", errno);
	printf("{");
	print_number("messages", messages != UNCOUNTED, messages);
	print_number("lost", lossy >= 0, memory[SK_MEMINFO_DROPS]);
	printf("\"sights\": [");
	for (size_t i = 0; i < n_sights; i++) {
		char text[INET6_ADDRSTRLEN];

		inet_ntop(network.family, sights[i].of->address, text, sizeof(text));
		printf("%s[%llu, \"%c%s\"]", i ? ", " : "", (unsigned long long)sights[i].boot_ns,
		       sights[i].there ? '+' : '-', text);
	}
	printf("]}\n");
	fflush(stdout);
	_exit(0);
}

static void *wait_for_end(void *set)
{
	int number;

	sigwait(set, &number);
	report();
	return NULL;
}

void sights_ready(const char *line, int sock)
{
	pthread_t waiting;

	lossy = sock;
	if (pthread_create(&waiting, NULL, wait_for_end, &end))
		die("thread", errno);
	puts(line);
	fflush(stdout);
}
