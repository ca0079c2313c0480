/* SPDX-License-Identifier: Apache-2.0 */
/* From errno to the words of io/error.h. */
#ifndef OS_ERROR_H
#define OS_ERROR_H

/* |number| is an errno value; 0 gives IO_OK. */
int os_error(int number);

#endif
