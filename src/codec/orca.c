/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/orca.h"

#include <math.h>
#include <string.h>

#include "codec/orca_parts.h"

/* --- what is found --- */

void orca_report_init(struct load_report *r)
{
    *r = (struct load_report){
        .cpu = LOAD_NOT_SAID, .memory = LOAD_NOT_SAID, .application = LOAD_NOT_SAID};
}

bool orca_says_something(const struct load_report *r)
{
    return r->cpu >= 0 || r->memory >= 0 || r->application >= 0 || r->named_count > 0;
}

/* A name may be shown to people and put into lines and JSON: plain visible ASCII only. */
static bool is_name(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] <= ' ' || name.data[i] > '~' || name.data[i] == '"' ||
            name.data[i] == '\\')
            return false;
    return name.len > 0 && name.len <= LOAD_NAME_MAX;
}

static bool same_name(const struct load_named *n, struct bytes name)
{
    return bytes_equal(bytes_from(n->name, n->len), name);
}

void orca_put_named(struct load_report *r, struct bytes name, double value)
{
    struct load_named *n = &r->named[r->named_count];

    if (r->named_count == LOAD_NAMED_MAX || !is_name(name) || fabs(value) > LOAD_VALUE_MAX)
        return;
    for (uint32_t i = 0; i < r->named_count; i++)
        if (same_name(&r->named[i], name))
            return;
    memcpy(n->name, name.data, name.len);
    n->len = (uint32_t)name.len;
    n->value = value;
    r->named_count++;
}

bool orca_put_share(double *to, double value)
{
    if (!isfinite(value) || value < 0)
        return false;
    *to = value;
    return true;
}

/* False: no such value can be. What we do not know is passed over. */
static bool put(struct load_report *r, struct bytes name, double value)
{
    struct bytes prefix = BYTES("named_metrics.");

    if (bytes_equal(name, BYTES("cpu_utilization")))
        return orca_put_share(&r->cpu, value);
    if (bytes_equal(name, BYTES("mem_utilization")))
        return orca_put_share(&r->memory, value);
    if (bytes_equal(name, BYTES("application_utilization")))
        return orca_put_share(&r->application, value);
    if (!isfinite(value))
        return false;
    if (bytes_start_with(name, prefix))
        orca_put_named(r, bytes_skip(name, prefix.len), value);
    return true;
}

/* --- numbers --- */

#define DIGITS_MAX   18 /* that a uint64_t holds for certain; what follows is beyond a double */
#define EXPONENT_MAX 400

static bool is_digit(struct bytes b)
{
    return b.len > 0 && b.data[0] >= '0' && b.data[0] <= '9';
}

/* What is read, as a whole number with a power of ten. */
struct decimal {
    uint64_t digits;
    int32_t count;
    int32_t power;
};

/* |after_dot|: each digit is worth a tenth of the one before it. */
static bool take_digits(struct bytes *in, struct decimal *d, int32_t after_dot)
{
    bool any = is_digit(*in);

    for (; is_digit(*in); *in = bytes_skip(*in, 1)) {
        if (d->count < DIGITS_MAX) {
            d->digits = 10 * d->digits + (uint64_t)(in->data[0] - '0');
            d->count += d->digits != 0;
            d->power -= after_dot;
        } else {
            d->power += 1 - after_dot;
        }
    }
    return any;
}

static bool take_char(struct bytes *in, uint8_t c)
{
    if (in->len == 0 || in->data[0] != c)
        return false;
    *in = bytes_skip(*in, 1);
    return true;
}

static bool take_exponent(struct bytes *in, struct decimal *d)
{
    struct decimal e = {0, 0, 0};
    bool negative;

    if (!take_char(in, 'e') && !take_char(in, 'E'))
        return true;
    negative = take_char(in, '-');
    if (!negative)
        (void)take_char(in, '+');
    if (!take_digits(in, &e, 0))
        return false;
    if (e.digits > EXPONENT_MAX || e.power != 0)
        e.digits = EXPONENT_MAX;
    d->power += negative ? -(int32_t)e.digits : (int32_t)e.digits;
    return true;
}

/* By squaring; infinity where it is too large. */
static double ten_to(int32_t power)
{
    double result = 1;

    for (double square = 10; power > 0; power /= 2, square *= square)
        result *= power % 2 != 0 ? square : 1;
    return result;
}

static bool take_number(struct bytes *in, double *value)
{
    struct decimal d = {0, 0, 0};
    bool negative = take_char(in, '-');

    if (!take_digits(in, &d, 0) || (take_char(in, '.') && !take_digits(in, &d, 1)) ||
        !take_exponent(in, &d))
        return false;
    *value = d.power < 0 ? (double)d.digits / ten_to(-d.power) : (double)d.digits * ten_to(d.power);
    if (d.digits == 0)
        *value = 0; /* and not 0 x infinity */
    if (negative)
        *value = -*value;
    return isfinite(*value);
}

/* --- TEXT --- */

static bool read_pair(struct bytes pair, struct load_report *out)
{
    size_t equals = bytes_find(pair, '=');
    struct bytes value;
    double number;

    if (equals == pair.len)
        equals = bytes_find(pair, ':'); /* as Envoy has it */
    if (equals == 0 || equals == pair.len)
        return false;
    value = bytes_trim(bytes_skip(pair, equals + 1));
    return take_number(&value, &number) && value.len == 0 &&
           put(out, bytes_trim(bytes_slice(pair, 0, equals)), number);
}

static bool read_text(struct bytes in, struct load_report *out)
{
    struct bytes pair;

    while (bytes_next_element(&in, &pair))
        if (!read_pair(pair, out))
            return false;
    return true;
}

/* --- JSON --- */

#define DEPTH_MAX 8

static void skip_blanks(struct bytes *in)
{
    while (in->len > 0 && (in->data[0] == ' ' || in->data[0] == '\t'))
        *in = bytes_skip(*in, 1);
}

static bool take_token(struct bytes *in, uint8_t c)
{
    skip_blanks(in);
    return take_char(in, c);
}

/* A string as it stands, its escapes not read: the names that we know have none. */
static bool take_string(struct bytes *in, struct bytes *out)
{
    size_t n = 0;

    if (!take_token(in, '"'))
        return false;
    while (n < in->len && in->data[n] != '"')
        n += in->data[n] == '\\' ? 2 : 1;
    if (n >= in->len)
        return false;
    *out = bytes_slice(*in, 0, n);
    *in = bytes_skip(*in, n + 1);
    return true;
}

static bool take_word(struct bytes *in, struct bytes word)
{
    if (!bytes_start_with(*in, word))
        return false;
    *in = bytes_skip(*in, word.len);
    return true;
}

static bool skip_value(struct bytes *in, uint32_t depth);

static bool skip_members(struct bytes *in, uint8_t closing, uint32_t depth)
{
    struct bytes name;

    if (take_token(in, closing))
        return true;
    do {
        if (closing == '}' && (!take_string(in, &name) || !take_token(in, ':')))
            return false;
        if (!skip_value(in, depth + 1))
            return false;
    } while (take_token(in, ','));
    return take_token(in, closing);
}

static bool skip_value(struct bytes *in, uint32_t depth)
{
    struct bytes text;
    double number;

    skip_blanks(in);
    if (depth > DEPTH_MAX || in->len == 0)
        return false;
    if (in->data[0] == '"')
        return take_string(in, &text);
    if (take_char(in, '{'))
        return skip_members(in, '}', depth);
    if (take_char(in, '['))
        return skip_members(in, ']', depth);
    return take_word(in, BYTES("true")) || take_word(in, BYTES("false")) ||
           take_word(in, BYTES("null")) || take_number(in, &number);
}

/* The forms of protobuf's JSON: names as in the schema, or in camel case. */
static struct bytes plain_name(struct bytes name)
{
    static const char *const names[][2] = {
        {"cpuUtilization", "cpu_utilization"},
        {"memUtilization", "mem_utilization"},
        {"applicationUtilization", "application_utilization"},
        {"namedMetrics", "named_metrics"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (bytes_equal(name, bytes_of(names[i][0])))
            return bytes_of(names[i][1]);
    return name;
}

/* What follows '{' of named_metrics. */
static bool read_named(struct bytes *in, struct load_report *out)
{
    struct bytes name;
    double value;

    if (take_token(in, '}'))
        return true;
    do {
        if (!take_string(in, &name) || !take_token(in, ':'))
            return false;
        skip_blanks(in);
        if (!take_number(in, &value))
            return false;
        orca_put_named(out, name, value);
    } while (take_token(in, ','));
    return take_token(in, '}');
}

static bool read_member(struct bytes *in, struct load_report *out)
{
    struct bytes name;
    double value;

    if (!take_string(in, &name) || !take_token(in, ':'))
        return false;
    name = plain_name(name);
    skip_blanks(in);
    if (bytes_equal(name, BYTES("named_metrics")))
        return take_char(in, '{') && read_named(in, out);
    if (in->len > 0 && (in->data[0] == '-' || is_digit(*in)))
        return take_number(in, &value) && put(out, name, value);
    return skip_value(in, 1);
}

static bool read_json(struct bytes in, struct load_report *out)
{
    if (!take_token(&in, '{'))
        return false;
    if (!take_token(&in, '}')) {
        do {
            if (!read_member(&in, out))
                return false;
        } while (take_token(&in, ','));
        if (!take_token(&in, '}'))
            return false;
    }
    skip_blanks(&in);
    return in.len == 0;
}

/* --- any of them --- */

bool orca_read(struct bytes value, struct load_report *out)
{
    bool good = false;

    orca_report_init(out);
    if (value.len > ORCA_VALUE_MAX)
        return false;
    if (bytes_start_with(value, BYTES("BIN ")))
        return orca_read_binary(bytes_skip(value, 4), out);
    if (bytes_start_with(value, BYTES("JSON ")))
        good = read_json(bytes_skip(value, 5), out);
    else if (bytes_start_with(value, BYTES("TEXT ")))
        good = read_text(bytes_skip(value, 5), out);
    return good && orca_says_something(out);
}
