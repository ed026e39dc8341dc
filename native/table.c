// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

static void put(struct hash *h, uint32_t hash, uint32_t slot)
{
	uint32_t i = hash;

	while (h->cells[i & h->mask].slot != AT_NONE)
		i++;
	h->cells[i & h->mask] = (struct cell){ hash, slot };
}

int at_hash_reserve(struct hash *h)
{
	uint32_t size = h->cells ? h->mask + 1 : 0;
	struct hash bigger;
	uint32_t i;

	if (2 * (h->used + 1) <= size)
		return 0;
	bigger.mask = size ? 2 * size - 1 : 31;
	bigger.used = h->used;
	bigger.cells = malloc(((size_t)bigger.mask + 1) * sizeof(*bigger.cells));
	if (!bigger.cells)
		return -ENOMEM;
	at_hash_clear(&bigger);
	bigger.used = h->used;
	for (i = 0; i < size; i++) {
		if (h->cells[i].slot != AT_NONE)
			put(&bigger, h->cells[i].hash, h->cells[i].slot);
	}
	free(h->cells);
	*h = bigger;
	return 0;
}

void at_hash_add(struct hash *h, uint32_t hash, uint32_t slot)
{
	put(h, hash, slot);
	h->used++;
}

/* Cells behind the hole move up, so that no search ends early. */
void at_hash_remove(struct hash *h, uint32_t hash, uint32_t slot)
{
	uint32_t hole = hash & h->mask, i, home;

	while (h->cells[hole].slot != slot)
		hole = (hole + 1) & h->mask;
	for (i = (hole + 1) & h->mask; h->cells[i].slot != AT_NONE; i = (i + 1) & h->mask) {
		home = h->cells[i].hash & h->mask;
		if (((i - home) & h->mask) < ((i - hole) & h->mask))
			continue;
		h->cells[hole] = h->cells[i];
		hole = i;
	}
	h->cells[hole].slot = AT_NONE;
	h->used--;
}

void at_hash_clear(struct hash *h)
{
	if (h->cells)
		memset(h->cells, 0xff, ((size_t)h->mask + 1) * sizeof(*h->cells));
	h->used = 0;
}

void at_hash_free(struct hash *h)
{
	free(h->cells);
}

int at_grow(void **array, uint32_t *cap, uint32_t need, size_t size)
{
	uint32_t n = *cap ? *cap : 8;
	void *bigger;

	if (need <= *cap)
		return 0;
	while (n < need)
		n *= 2;
	bigger = realloc(*array, n * size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	*cap = n;
	return 0;
}

void *at_regrow(void *old, size_t used, size_t bytes)
{
	void *bigger = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!bigger)
		return NULL;
	if (used)
		memcpy(bigger, old, used);
	memset((char *)bigger + used, 0, bytes - used);
	free(old);
	return bigger;
}
