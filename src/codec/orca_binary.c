/* SPDX-License-Identifier: Apache-2.0 */
/* xds.data.orca.v3.OrcaLoadReport: base64, then protobuf. */
#include <math.h>
#include <string.h>

#include "codec/orca.h"
#include "codec/orca_parts.h"

/* --- base64 --- */

#define BINARY_MAX (ORCA_VALUE_MAX / 4 * 3)

/* UINT8_MAX: not a digit. Both alphabets, as senders use either. */
static uint8_t digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint8_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint8_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint8_t)(c - '0' + 52);
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : UINT8_MAX;
}

static struct bytes without_padding(struct bytes b)
{
    for (unsigned i = 0; i < 2 && b.len > 0 && b.data[b.len - 1] == '='; i++)
        b.len--;
    return b;
}

/* |out| has room for three quarters of |b|. False: it is no base64. */
static bool decode(struct bytes b, uint8_t *out, size_t *len)
{
    uint32_t bits = 0, have = 0;

    b = without_padding(b);
    *len = 0;
    if (b.len % 4 == 1)
        return false;
    for (size_t i = 0; i < b.len; i++) {
        uint8_t d = digit(b.data[i]);

        if (d == UINT8_MAX)
            return false;
        bits = bits << 6 | d;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[(*len)++] = (uint8_t)(bits >> have);
        }
    }
    return (bits & ((1u << have) - 1)) == 0;
}

/* --- protobuf --- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum field_number {
    ORCA_CPU = 1,
    ORCA_MEMORY = 2,
    ORCA_NAMED = 8,
    ORCA_APPLICATION = 9,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

static bool take_varint(struct bytes *in, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < 10 && i < in->len; i++) {
        *value |= (uint64_t)(in->data[i] & 0x7f) << (7 * i);
        if ((in->data[i] & 0x80) == 0) {
            *in = bytes_skip(*in, i + 1);
            return true;
        }
    }
    return false;
}

/* A field: its number, how it is written, and the bytes of its value (of a varint: none). */
struct pb_field {
    uint64_t number;
    enum wire wire;
    struct bytes value;
};

static bool take_bytes(struct bytes *in, uint64_t len, struct bytes *out)
{
    if (len > in->len)
        return false;
    *out = bytes_slice(*in, 0, (size_t)len);
    *in = bytes_skip(*in, (size_t)len);
    return true;
}

static bool take_field(struct bytes *in, struct pb_field *f)
{
    uint64_t tag, len;

    f->value = BYTES_NONE;
    if (!take_varint(in, &tag) || tag >> 3 == 0)
        return false;
    f->number = tag >> 3;
    f->wire = (enum wire)(tag & 7);
    if (f->wire == WIRE_VARINT)
        return take_varint(in, &len);
    if (f->wire == WIRE_64)
        return take_bytes(in, 8, &f->value);
    if (f->wire == WIRE_32)
        return take_bytes(in, 4, &f->value);
    return f->wire == WIRE_BYTES && take_varint(in, &len) && take_bytes(in, len, &f->value);
}

static double as_double(struct bytes b)
{
    uint64_t bits = 0;
    double value;

    for (size_t i = 8; i-- > 0;)
        bits = bits << 8 | b.data[i];
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* An entry of a map: a message of a key and a value. */
static bool read_entry(struct bytes in, struct load_report *out)
{
    struct bytes name = BYTES_NONE;
    double value = 0;
    struct pb_field f;

    while (in.len > 0) {
        if (!take_field(&in, &f))
            return false;
        if (f.number == ENTRY_KEY && f.wire == WIRE_BYTES)
            name = f.value;
        if (f.number == ENTRY_VALUE && f.wire == WIRE_64)
            value = as_double(f.value);
    }
    return isfinite(value) && (orca_put_named(out, name, value), true);
}

static bool read_share(const struct pb_field *f, double *to)
{
    return f->wire != WIRE_64 || orca_put_share(to, as_double(f->value));
}

static bool read_field(const struct pb_field *f, struct load_report *out)
{
    if (f->number == ORCA_CPU)
        return read_share(f, &out->cpu);
    if (f->number == ORCA_MEMORY)
        return read_share(f, &out->memory);
    if (f->number == ORCA_APPLICATION)
        return read_share(f, &out->application);
    return f->number != ORCA_NAMED || f->wire != WIRE_BYTES || read_entry(f->value, out);
}

bool orca_read_binary(struct bytes base64, struct load_report *out)
{
    uint8_t room[BINARY_MAX + 3];
    struct pb_field f;
    struct bytes in;
    size_t len;

    orca_report_init(out);
    if (base64.len > ORCA_VALUE_MAX || !decode(base64, room, &len))
        return false;
    for (in = bytes_from(room, len); in.len > 0;)
        if (!take_field(&in, &f) || !read_field(&f, out))
            return false;
    return orca_says_something(out);
}
