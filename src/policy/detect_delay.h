/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many answers of a host it takes to accuse it. Pure.
 *
 * Source: D. Siegmund, "Sequential Analysis", 1985: a CUSUM with threshold h, whose sum gains g
 * a sample, takes (h + 1.166) / g of them (reference/detection.md B17).
 */
#ifndef POLICY_DETECT_DELAY_H
#define POLICY_DETECT_DELAY_H

/*
 * Of a host whose answers take |times| as long as its peers', where |sigma| is the standard
 * deviation of the logarithm of their latencies. Negative: never.
 */
double detect_answers_slower(double threshold, double times, double sigma);

/* Of a host that fails a share |failing|, and its peers |usual|. Negative: never. */
double detect_answers_failing(double threshold, double usual, double failing);

#endif
