/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_TEXT_H
#define SESSCTL_TEXT_H
/* Text for people: sizes, rates, times, hexadecimal, and octets that are safe to print. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* True if @src is valid UTF-8 without control characters (C0, DEL, C1, bidi, line ends, invisible). */
bool text_is_clean(const void *src, size_t len);

/* Copy @src as clean UTF-8, anything else replaced by '?'; always terminated. */
void text_clean(char *dst, size_t size, const void *src, size_t len);

/* How many octets of @s, clean UTF-8, fill at most @columns columns: whole characters only. */
size_t text_fit(const char *s, size_t columns);

/* "1 octet", "300 octets", "1.5 MiB". */
void text_size(char *dst, size_t size, uint64_t octets);

/* "12.3 MiB/s". */
void text_rate(char *dst, size_t size, double octets_per_second);

/* "0.42 s", "12.3 s", "3:05", "1:02:03". */
void text_time(char *dst, size_t size, double seconds);

/* @dst takes 2 * @len + 1 characters. */
void text_hex(char *dst, const uint8_t *src, size_t len);

/* Strict: pairs of hexadecimal digits only.  Return: octets written, or -1. */
long text_unhex(uint8_t *dst, size_t size, const char *src);

/* How many letters have to be put, taken or changed to make @a of @b, of words of at most 40 letters: more
 * than that is UINT_MAX. */
unsigned text_distance(const char *a, const char *b);

/* Which of two names @word may be meant for: @near, which may be NULL, or @name if it is nearer and two letters away at
 * most. */
const char *text_nearer(const char *word, const char *near, const char *name);

/* Print @text in lines of at most @columns, each but the first behind @indent blanks; the first begins at
 * column @at.  A line feed is put behind it. */
void text_fold(FILE *f, const char *text, unsigned at, unsigned indent, unsigned columns);

/* How wide help may be: COLUMNS, or else the terminal's width, at most 80; or 80. */
unsigned text_columns(FILE *f);

/* How wide rows of figures may be: COLUMNS, or else the terminal's width; or UINT_MAX, as in a pipe. */
unsigned text_width(FILE *f);

/* What to try when a file could not be opened, read or written: a constant sentence, or NULL. */
const char *text_file_advice(int sys_errno);

/* Strict: decimal digits, or hexadecimal ones after "0x".  Return: 0 or -1. */
int text_number(const char *s, uint64_t *v);

#endif
