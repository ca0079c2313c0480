/* SPDX-License-Identifier: Apache-2.0 */
/* What a host says of its own load with an answer (ORCA: codec/orca.h). */
#ifndef BASE_LOAD_REPORT_H
#define BASE_LOAD_REPORT_H

#include <stdint.h>

#define LOAD_NAMED_MAX 8    /* more of them are passed over */
#define LOAD_VALUE_MAX 1e15 /* those beyond as well */
#define LOAD_NAME_MAX  31   /* bytes; those with longer names as well */

#define LOAD_NOT_SAID (-1.0)

struct load_named {
    char name[LOAD_NAME_MAX + 1];
    uint32_t len;
    double value;
};

struct load_report {
    double cpu; /* shares of what there is; may be above 1; LOAD_NOT_SAID, here and below */
    double memory;
    double application;
    uint32_t named_count;
    struct load_named named[LOAD_NAMED_MAX];
};

#endif
