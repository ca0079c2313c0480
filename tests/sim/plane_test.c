/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct rig rig;

static void one_request_is_answered(void **state)
{
    struct rig_settings s;
    struct ask ask = ASK_PLAIN;
    uint64_t id;
    (void)state;

    rig_settings_init(&s, 1);
    assert_true(rig_start(&rig, &s));
    id = client_ask(&rig.client, &ask);
    world_run_for(&rig.world, NS_PER_S);
    assert_string_equal(rig.world.failure, "");
    assert_int_equal(client_fact(&rig.client, id)->outcome, OUTCOME_ANSWERED);
    assert_int_equal(client_fact(&rig.client, id)->status, 200);
    assert_int_equal(client_fact(&rig.client, id)->records, 1);
    assert_true(rig_drain(&rig, 40 * NS_PER_S));
    rig_free_proxy(&rig);
    assert_int_equal(rig.process.descriptors, 0);
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_request_is_answered),
    };

    return cmocka_run_group_tests_name("plane", tests, NULL, NULL);
}
