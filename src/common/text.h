/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEXT_H
#define DDPS_TEXT_H
/* Hexadecimal text. */
#include <stddef.h>
#include <stdint.h>

/* The value of a hexadecimal digit, or -1. */
static inline int ddps_text_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Writes @n octets as 2 @n digits, no NUL. */
static inline void ddps_text_hex(char *text, const uint8_t *octets, size_t n)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digit[octets[i] >> 4];
		text[2 * i + 1] = digit[octets[i] & 15];
	}
}

/* Reads @n octets from 2 @n digits.  Return: behind them, or NULL: a character is no digit. */
static inline const char *ddps_text_unhex(uint8_t *octets, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++) {
		int hi = ddps_text_digit(*text), lo;

		if (hi < 0)
			return NULL;
		lo = ddps_text_digit(text[1]);
		if (lo < 0)
			return NULL;
		octets[i] = (uint8_t)(hi << 4 | lo);
		text += 2;
	}
	return text;
}

#endif
