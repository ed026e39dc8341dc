/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the programs of bpf/trace.bpf.c. */
#ifndef ADDRTRACKER_TRACE_H
#define ADDRTRACKER_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "loader.h"

struct at_probe;

/*
 * Loads one program of the object (the bytes of an ELF file) onto maps that there are already, and
 * attaches it to what its section names. It looks at the network namespace with this inode number
 * alone; 0 = at all. 0 or -errno; `log` as in at_bpf_load().
 */
int at_probe_attach(const void *object, size_t size, const char *program,
		    const struct at_map_fd *maps, size_t n, uint32_t netns, struct at_probe **out,
		    char *log, size_t log_size);
void at_probe_detach(struct at_probe *probe);

#endif
