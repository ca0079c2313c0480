/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that betray every mistake: each byte depends on whose body it is and where it stands, so a
 * lost, repeated, swapped or foreign byte shows. And the request line that says what is wanted:
 * "/r/17/2048/c" is request 17, whose answer has 2048 bytes, chunked.
 */
#ifndef SIM_PAYLOAD_H
#define SIM_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"

enum framing { FRAMING_NONE, FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_TO_CLOSE };

/* What a request path asks for. */
struct wish {
    uint64_t id;
    uint64_t answer; /* bytes of the answer's body */
    enum framing framing;
};

/* Two keys a request: one for its body, one for its answer's. Never 0. */
uint64_t payload_key_request(uint64_t id);
uint64_t payload_key_answer(uint64_t id);

static inline uint8_t payload_byte(uint64_t key, uint64_t at)
{
    return (uint8_t)((key >> ((at & 7) * 8)) + (at >> 3) * 31 + (at >> 11) * 7);
}

void payload_fill(uint64_t key, uint64_t from, uint8_t *to, size_t len);

/* Index of the first wrong byte, or |data.len|. */
size_t payload_check(uint64_t key, uint64_t from, struct bytes data);

void wish_write(struct text *t, const struct wish *w);

/* False: no path of ours. */
bool wish_parse(struct bytes path, struct wish *out);

#endif
