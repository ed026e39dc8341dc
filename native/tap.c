// SPDX-License-Identifier: Apache-2.0
/* A copy of every applied record, for recordings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

static void ring_write(struct at_tap *tap, const uint8_t *data, size_t size)
{
	size_t at = (tap->head + tap->used) % tap->size;
	size_t first = size < tap->size - at ? size : tap->size - at;

	memcpy(tap->ring + at, data, first);
	memcpy(tap->ring, data + first, size - first);
	tap->used += size;
}

static void ring_peek(const struct at_tap *tap, uint8_t *out, size_t size)
{
	size_t first = size < tap->size - tap->head ? size : tap->size - tap->head;

	memcpy(out, tap->ring + tap->head, first);
	memcpy(out + first, tap->ring, size - first);
}

int at_tap_push(struct at_tap *tap, const void *record, size_t size)
{
	if (size > tap->size - tap->used)
		return 0;
	ring_write(tap, record, size);
	return 1;
}

int at_source_tap(struct at_source *s, size_t size)
{
	uint8_t *ring = NULL;

	if (size) {
		ring = malloc(size);
		if (!ring)
			return -ENOMEM;
	}
	free(s->tap.ring);
	s->tap = (struct at_tap){ .ring = ring, .size = size };
	return 0;
}

size_t at_source_tap_read(struct at_source *s, void *buf, size_t max)
{
	struct at_tap *tap = &s->tap;
	size_t done = 0;

	while (tap->used) {
		uint16_t size; /* first field of the header */

		ring_peek(tap, (uint8_t *)&size, sizeof(size));
		if (size > max - done)
			break;
		ring_peek(tap, (uint8_t *)buf + done, size);
		tap->head = (tap->head + size) % tap->size;
		tap->used -= size;
		done += size;
	}
	return done;
}
