// SPDX-License-Identifier: Apache-2.0
/*
 * How long the C parser takes for a netlink message.
 *
 * Each FILE holds messages of one kind, one behind the other. Prints a line of JSON for each:
 * messages, records that came of them, median_ns and p99_ns of one message. A sample is one pass
 * over all messages of the file, divided by their number.
 * Usage: parse_bench SAMPLES FILE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <linux/netlink.h>

#include "netlink.h"

#define FILE_MAX (1u << 20)

static uint8_t messages[FILE_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
static uint8_t record[AT_RECORD_MAX] __attribute__((aligned(8)));

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int by_value(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return a < b ? -1 : a > b;
}

static size_t read_all(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t size = file ? fread(messages, 1, sizeof(messages), file) : 0;

	if (!size || size == sizeof(messages)) {
		fprintf(stderr, "parse_bench: %s: cannot be read, or is too large\n", path);
		exit(1);
	}
	fclose(file);
	return size;
}

/* Parses all of them; how many, and how many records came of it. */
static unsigned parse(size_t left, unsigned *records)
{
	const uint8_t *next = messages;
	unsigned count = 0;

	*records = 0;
	while (left >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *head = (const struct nlmsghdr *)next;
		int size = at_parse(next, head->nlmsg_len, 1, 0, record);

		if (size < 0) {
			fprintf(stderr, "parse_bench: message %u is malformed\n", count);
			exit(1);
		}
		*records += size > 0;
		count++;
		left -= NLMSG_ALIGN(head->nlmsg_len);
		next += NLMSG_ALIGN(head->nlmsg_len);
	}
	return count;
}

static void measure(const char *path, size_t samples)
{
	double *sample = calloc(samples, sizeof(*sample));
	size_t size = read_all(path);
	unsigned records, count = parse(size, &records);

	for (size_t s = 0; s < samples; s++) {
		uint64_t start = clock_ns();

		parse(size, &records);
		sample[s] = (double)(clock_ns() - start) / count;
	}
	qsort(sample, samples, sizeof(*sample), by_value);
	printf("{\"file\": \"%s\", \"messages\": %u, \"records\": %u, \"median_ns\": %.1f, "
	       "\"p99_ns\": %.1f}\n",
	       path, count, records, sample[samples / 2], sample[samples * 99 / 100]);
	free(sample);
}

int main(int argc, char **argv)
{
	size_t samples = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;

	if (samples < 100) {
		fprintf(stderr, "usage: parse_bench SAMPLES FILE..., at least 100 samples\n");
		return 2;
	}
	for (int i = 2; i < argc; i++)
		measure(argv[i], samples);
	return 0;
}
