/* SPDX-License-Identifier: Apache-2.0 */
/* The standard normal distribution. Pure. */
#ifndef POLICY_NORMAL_H
#define POLICY_NORMAL_H

/*
 * The point below which a share |p| of it lies, |p| in (0, 1); right to nine digits. Source:
 * P. J. Acklam, "An algorithm for computing the inverse normal cumulative distribution function".
 */
double normal_quantile(double p);

#endif
