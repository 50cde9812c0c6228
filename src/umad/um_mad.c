/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of libibumad that look into a MAD, and need no port. */
#include <infiniband/umad.h>

#define API __attribute__((visibility("default")))

API size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

API void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

API ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

API int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

API int umad_get_pkey(void *umad)
{
	return ((struct ib_user_mad *)umad)->addr.pkey_index;
}

API int umad_set_pkey(void *umad, int pkey_index)
{
	((struct ib_user_mad *)umad)->addr.pkey_index = (uint16_t)pkey_index;
	return 0;
}
