/* SPDX-License-Identifier: Apache-2.0 */
/* What is put into the target of an admin page comes out of it again, whatever it is. */
#include "main/ask_admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admin/query.h"
#include "base/rng.h"

static void comes_back(struct bytes cluster, struct bytes host)
{
    char target_room[4096], value_room[512];
    struct text target, value;
    struct bytes query;

    text_init(&target, target_room, sizeof(target_room));
    text_str(&target, "/explain");
    ask_parameter(&target, "cluster", cluster);
    ask_parameter(&target, "host", host);
    assert_false(target.failed);
    for (size_t i = 0; i < target.len; i++)
        assert_true(target.data[i] > ' ' && target.data[i] < 0x7f && target.data[i] != '#');
    query = bytes_skip(text_bytes(&target), bytes_find(text_bytes(&target), '?'));
    text_init(&value, value_room, sizeof(value_room));
    assert_int_equal(query_find(query, "cluster", &value), QUERY_FOUND);
    assert_true(bytes_equal(text_bytes(&value), cluster));
    text_init(&value, value_room, sizeof(value_room));
    assert_int_equal(query_find(query, "host", &value), QUERY_FOUND);
    assert_true(bytes_equal(text_bytes(&value), host));
}

static void names_of_istio_and_addresses_come_back(void **state)
{
    (void)state;

    comes_back(BYTES("outbound|80|v1|checkout.shop.svc.cluster.local"), BYTES("[::1]:8080"));
    comes_back(BYTES("a&host=b?c=d%20+"), BYTES("unix:/run/a b#c"));
    comes_back(BYTES(""), BYTES("="));
}

static void any_bytes_but_nul_come_back(void **state)
{
    struct rng rng;
    (void)state;

    rng_init(&rng, 3);
    for (uint32_t round = 0; round < 2000; round++) {
        uint8_t one[100], two[100];
        size_t n = rng_below(&rng, sizeof(one)), m = rng_below(&rng, sizeof(two));

        for (size_t i = 0; i < n; i++)
            one[i] = (uint8_t)(1 + rng_below(&rng, 255));
        for (size_t i = 0; i < m; i++)
            two[i] = (uint8_t)(1 + rng_below(&rng, 255));
        comes_back(bytes_from(one, n), bytes_from(two, m));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_istio_and_addresses_come_back),
        cmocka_unit_test(any_bytes_but_nul_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
