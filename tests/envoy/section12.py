# SPDX-License-Identifier: Apache-2.0
"""The worked examples of reference/envoy-semantics.md, section 12: which scenario plays each beside the real Envoy, and
which tests play it on the pure policy and through the data plane."""
import dataclasses
import pathlib
import re

import harness

TESTS = pathlib.Path(harness.ROOT) / "tests"
JUDGE, RATES, PLANE = "policy/outlier_envoy_test.c", "policy/outlier_statistics_test.c", "sim/plane_outlier_examples_test.c"
PANIC, RETRY, BUDGET = "policy/panic_test.c", "exchange/retrying_test.c", "policy/retry_budget_test.c"
EXCHANGE, SLOTS, E2E = "exchange/exchange_test.c", "sim/plane_slots_test.c", "e2e/test_retries.py"
HTTP2 = "needs HTTP/2"


@dataclasses.dataclass(frozen=True)
class Example:
    name: str
    says: str
    envoy: tuple = ()  # names of scenarios
    pure: tuple = ()  # (file below tests/, function)
    plane: tuple = ()  # the same, through the data plane
    lacks: str = ""


EXAMPLES = [
    Example("O1", "three hosts, cap 10 %: nobody goes", ("cap-that-rounds-to-nobody",),
            ((JUDGE, "o1_three_hosts_at_ten_percent_lose_nobody"),), ((PLANE, "o1_three_hosts_with_the_defaults_lose_nobody"),)),
    Example("O2", "cap 50 %: the first goes at once", ("cap-50-of-three",),
            ((JUDGE, "o2_at_fifty_percent_the_first_goes_at_once"),),
            ((PLANE, "o2_o3_at_fifty_percent_the_first_of_three_goes_and_the_second_stays"),)),
    Example("O3", "cap 50 %: the second stays", ("cap-50-refuses-the-second",), ((JUDGE, "o3_and_the_second_stays"),),
            ((PLANE, "o2_o3_at_fifty_percent_the_first_of_three_goes_and_the_second_stays"),)),
    Example("O4", "the only host goes; UH, or panic", ("five-503", "only-host-in-panic", "always-one"),
            ((JUDGE, "o4_the_only_host_goes_at_a_hundred_percent_or_if_one_always_may"),),
            ((PLANE, "o4_the_only_host_goes_and_panic_decides_what_then"),)),
    Example("O5", "a 404 ends the run", ("run-ended-by-404",), ((JUDGE, "o5_a_404_ends_the_run"),),
            ((PLANE, "o5_o6_what_ends_a_run"),)),
    Example("O6", "a 500 ends the gateway run, not that of 5xx", ("gateway-run-ended-by-500",),
            ((JUDGE, "o6_a_500_ends_the_gateway_run"),), ((PLANE, "o5_o6_what_ends_a_run"),)),
    Example("O7", "five refused connects go as 5xx", ("refused-by-default",),
            ((JUDGE, "o7_five_refused_connects_go_as_5xx"),), ((PLANE, "o7_five_refused_connects_are_five_503"),)),
    Example("O8", "gRPC errors in trailers are none", (),
            ((JUDGE, "o8_grpc_errors_in_trailers_are_no_errors"),), (), HTTP2),
    Example("O9", "gRPC errors alone are", (),
            ((JUDGE, "o9_grpc_errors_alone_are_ejected_as_5xx_and_the_gateway_is_only_counted"),), (), HTTP2),
    Example("O10", "back at a sweep, not before", ("back-after-its-time", "back-only-by-a-sweep"),
            ((JUDGE, "o10_a_host_ejected_between_sweeps_returns_at_a_sweep"),),
            ((PLANE, "o10_out_three_seconds_after_a_sweep_back_at_the_fourth"),)),
    Example("O11", "success rates: 50 % among 100 %", ("success-rate",), ((RATES, "o11_one_of_five_stands_out"),),
            ((PLANE, "o11_to_o13_success_rates"),)),
    Example("O12", "success rates: 60 % among 100 %", ("success-rate-of-60",), ((RATES, "o12_even_by_little"),),
            ((PLANE, "o11_to_o13_success_rates"),)),
    Example("O13", "success rates: two hide each other", ("success-rate-two-hide",),
            ((RATES, "o13_two_bad_ones_hide_each_other"),), ((PLANE, "o11_to_o13_success_rates"),)),
    Example("O14", "failure percentage 85 %", ("failure-percentage",), ((RATES, "o14_failures_count_from_the_threshold_on"),),
            ((PLANE, "o14_failure_percentages"),)),
    Example("O15", "each ejection lasts longer", ("longer-each-time",), ((JUDGE, "o15_the_time_grows_by_the_base"),),
            ((PLANE, "o15_four_ejections_soon_after_one_another"),)),
    Example("O16", "split: answers 503 are no local failures", ("answers-503-split",),
            ((JUDGE, "o16_answers_of_503_are_no_local_failures"),), ((PLANE, "o16_o17_split_answers_and_enforcing_of_zero"),)),
    Example("O17", "enforcing 0 only counts", ("not-enforced",), ((JUDGE, "o17_enforcing_of_zero_only_counts"),),
            ((PLANE, "o16_o17_split_answers_and_enforcing_of_zero"),)),
    Example("P1", "four of ten, 50 %: panic", ("four-of-ten",), ((PANIC, "p1_to_p5_of_the_reference"),
            (PANIC, "p1_in_panic_every_host_serves")), (("sim/plane_panic_test.c", "serve_all_serves_by_everyone_and_nobody_sees_uh"),)),
    Example("P2", "five of ten, 50 %: none", ("five-of-ten",), ((PANIC, "p1_to_p5_of_the_reference"),),
            (("sim/plane_panic_test.c", "p1_to_p4_of_the_reference"),)),
    Example("P3", "eight of ten, 90 %: none", ("eight-of-ten",), ((PANIC, "p1_to_p5_of_the_reference"),),
            (("sim/plane_panic_test.c", "p1_to_p4_of_the_reference"),)),
    Example("P4", "seven of ten, 90 %: panic", ("seven-of-ten",), ((PANIC, "p1_to_p5_of_the_reference"),),
            (("sim/plane_panic_test.c", "p1_to_p4_of_the_reference"),)),
    Example("P5", "no threshold: 503 UH", ("no-panic",), ((PANIC, "p5_without_panic_nobody_is_left"),),
            (("sim/plane_panic_test.c", "without_panic_nobody_is_left_and_it_says_uh"),)),
    Example("P6", "two priorities", (), (), (), "Firebreak has no priorities"),
    Example("C1", "one waits, one is refused", ("one-and-one",), (), ((SLOTS, "c1_one_waits_and_one_is_refused"),)),
    Example("C1b", "who connects takes the only place", ("pending-while-connecting",), (),
            ((SLOTS, "c1b_as_envoy_the_first_takes_the_only_place_while_it_connects"),)),
    Example("C2", "max_requests refuses; over HTTP/1 here", ("requests-refuse",),
            ((EXCHANGE, "the_request_limit_refuses_and_gives_the_connection_back"),), (), "its streams: " + HTTP2),
    Example("C3", "no retry is allowed: UO", ("no-budget",), ((RETRY, "c3_no_retries_at_once_is_uo_and_the_hosts_own_answer"),),
            ((E2E, "test_retries_at_once_are_bounded_by_max_retries"),)),
    Example("C4", "20 % of thirty are six", ("budget-of-thirty",),
            ((BUDGET, "a_share_is_cut_to_whole_requests_and_never_below_its_least"),
             (RETRY, "c4_c5_a_share_of_what_is_under_way_and_never_below_its_least")),
            (("sim/plane_retries_test.c", "c4_c5_a_share_of_what_is_under_way_and_never_below_its_least"),)),
    Example("C5", "never below three", ("budget-of-few",),
            ((BUDGET, "a_share_is_cut_to_whole_requests_and_never_below_its_least"),
             (RETRY, "c4_c5_a_share_of_what_is_under_way_and_never_below_its_least")),
            (("sim/plane_retries_test.c", "c4_c5_a_share_of_what_is_under_way_and_never_below_its_least"),)),
    Example("R1", "two retries used up: URX", ("used-up",), ((RETRY, "r1_used_up_retries_show_the_last_answer_and_urx"),),
            (("sim/plane_retries_test.c", "r1_used_up_retries_show_the_last_answer_and_urx"),)),
    Example("R2", "the second goes well", ("second-is-good",), ((RETRY, "r2_a_retry_that_helps_leaves_no_flag"),),
            ((E2E, "test_an_answer_that_is_retried_is_never_seen_and_each_attempt_is_in_the_log"),)),
    Example("R3", "refused twice: URX,UF", ("connect-failure",), ((RETRY, "r3_refused_connects_end_as_urx_uf"),),
            ((E2E, "test_used_up_retries_of_refused_connects_are_urx_uf"),)),
    Example("R4", "per-try within the route's timeout", ("three-tries-in-time",),
            ((RETRY, "r4_per_try_timeouts_are_retried_within_the_route_timeout"),),
            ((E2E, "test_a_silent_host_is_left_after_the_per_try_timeout"),)),
    Example("R5", "a silent host: 504 UT", ("route-timeout",), ((RETRY, "r5_without_a_policy_the_timeout_is_the_end"),),
            (("sim/plane_test.c", "a_host_that_falls_silent_is_ejected_for_its_timeouts"),), "its gRPC half: " + HTTP2),
    Example("R6", "a request that never ends has no timeout", ("route-timeout-starts-late",),
            ((RETRY, "r6_a_request_that_never_ends_starts_no_timeout"),),
            (("sim/plane_test.c", "a_steady_upload_may_take_longer_than_the_route_timeout"),)),
    Example("R7", "cut after the head", ("fin-in-the-body",), ((EXCHANGE, "an_answer_cut_short_cuts_the_client_off"),),
            (("e2e/test_cut_messages.py", "test_an_answer_cut_at_any_byte"),)),
    Example("R8", "REFUSED_STREAM is retried", (), (("policy/retry_test.c", "attempts_without_an_answer"),), (), HTTP2),
    Example("R9", "garbage: 502 UPE", ("bad-garbage",), ((EXCHANGE, "no_http_is_502_upe"),
            (RETRY, "r9_garbage_is_retried_as_a_reset_and_else_upe")),
            (("e2e/test_http1_cases.py", "test_c005_an_answer_with_two_lengths_is_502"),)),
]

EXPECTED = [f"O{i}" for i in range(1, 18)] + [f"P{i}" for i in range(1, 7)] + ["C1", "C1b", "C2", "C3", "C4", "C5"] + [
    f"R{i}" for i in range(1, 10)]


def exists(file, function):
    found = re.search(rf"^(static void|def) {function}\(", (TESTS / file).read_text(), re.M)
    return found is not None


def _list(tests):
    return "<br>".join(f"`{file}`: {function}" for file, function in tests) or "–"


def table():
    lines = ["| | | beside Envoy | on the pure policy | through the data plane | not here |", "|---|---|---|---|---|---|"]
    for e in EXAMPLES:
        scenarios = ", ".join(f"`{name}`" for name in e.envoy) or "–"
        lines.append(f"| {e.name} | {e.says} | {scenarios} | {_list(e.pure)} | {_list(e.plane)} | {e.lacks} |")
    return lines
