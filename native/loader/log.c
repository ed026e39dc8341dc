// SPDX-License-Identifier: Apache-2.0
/* What libbpf says, kept instead of printed. */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader.h"

/* libbpf has one way to print for all threads. */
static __thread struct {
	char *text; /* NULL: nobody listens */
	size_t size, length;
} kept;

/* The last lines say what is wrong; the first ones may go. */
static void keep(const char *text, size_t length)
{
	size_t room = kept.size - 1;

	if (length > room) {
		text += length - room;
		length = room;
	}
	if (kept.length + length > room) {
		size_t gone = kept.length + length - room;

		memmove(kept.text, kept.text + gone, kept.length - gone);
		kept.length -= gone;
	}
	memcpy(kept.text + kept.length, text, length);
	kept.length += length;
	kept.text[kept.length] = 0;
}

static void print(const char *format, va_list arguments)
{
	char *line;
	int length;

	if (!kept.text)
		return;
	length = vasprintf(&line, format, arguments);
	if (length < 0)
		return;
	keep(line, length);
	free(line);
}

static int from_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN)
		print(format, arguments);
	return 0;
}

void at_log(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments);
	va_end(arguments);
}

void at_log_begin(char *log, size_t size)
{
	kept.text = size ? log : NULL;
	kept.size = size;
	kept.length = 0;
	if (size)
		log[0] = 0;
	libbpf_set_print(from_libbpf);
}

void at_log_end(void)
{
	kept.text = NULL;
}
