/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of what a configuration becomes. */
#ifndef TESTS_CONTROL_LOADED_H
#define TESTS_CONTROL_LOADED_H

#include "control/config.h"

/* What |text| becomes; the test fails where it is refused. */
static inline struct snapshot *load(const char *text)
{
    const struct config_source source = {BYTES("f.yaml"), bytes_of(text)};
    struct config_errors e;
    struct snapshot *s = NULL;

    config_errors_init(&e);
    if (config_parse(&source, 1, NULL, &e, &s) != CONFIG_OK)
        fail_msg("%.*s: %s", (int)e.at[0].message.len, (const char *)e.at[0].message.data, text);
    config_errors_release(&e);
    return s;
}

#endif
