/* SPDX-License-Identifier: Apache-2.0 */
/* Faults as GET /fault shows them. */
#ifndef LAB_FAULT_JSON_H
#define LAB_FAULT_JSON_H

#include "codec/json.h"
#include "lab/backend_faults.h"

/* As one object, with the numbers kept about it. */
void fault_to_json(struct json *j, const struct fault *f, mono_ns now);

#endif
