/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All balancers, one row each. To add one: a row here and a file lb_<name>.c with the function
 * lb_<name>_pick (see lb_choice.h). Nothing else.
 */
#ifndef POLICY_LB_KINDS_H
#define POLICY_LB_KINDS_H

/* Constant after LB_, name as configured and of its file, other name it goes by ("": none). */
#define LB_KINDS(X)                                                                                \
    X(ROUND_ROBIN, round_robin, "")                                                                \
    X(RANDOM, random, "")                                                                          \
    X(P2C, p2c, "two_choices")                                                                     \
    X(LEAST, least, "least_load")

#endif
