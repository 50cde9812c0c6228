/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_LEAVE_H
#define DDPS_TEST_LEAVE_H
/* How a child of fork ends a test. */
#include <unistd.h>

/* Of the coverage build alone. */
int __llvm_profile_write_file(void) __attribute__((weak));

/* As _exit: nothing that the parent has registered runs.  But what the child has run is counted, in
 * a build that counts. */
static inline _Noreturn void leave_child_fixture(int status)
{
	if (__llvm_profile_write_file)
		__llvm_profile_write_file();
	_exit(status);
}

#endif
