/* SPDX-License-Identifier: Apache-2.0 */
/* bpf(2) on maps, as far as a source needs it. All return 0 or -errno. */
#ifndef ADDRTRACKER_MAP_H
#define ADDRTRACKER_MAP_H

#include <stddef.h>
#include <stdint.h>

int at_map_lookup(int fd, uint32_t key, void *value);
int at_map_update(int fd, uint32_t key, const void *value);
int at_map_delete(int fd, uint32_t key);
/* Deletes all keys of a hash but those that come at the same time; -EAGAIN: they came too fast. */
int at_map_clear(int fd);
/* Bytes of a ring. */
int at_map_entries(int fd, uint32_t *entries);
/* CPUs that a per-CPU value has room for; more than that where it cannot be told. */
unsigned at_possible_cpus(void);

#endif
