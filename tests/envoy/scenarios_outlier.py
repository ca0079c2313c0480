# SPDX-License-Identifier: Apache-2.0
"""Who is ejected, when, and who comes back. Names like O5 are those of the reference, section 12.

Envoy's detector runs in another thread than its worker; run.Run.get waits for it after each request.
"""
from catalogue import scenario
from upstream import answer, held, raw, silent

AREA = "outlier detection"
CUT = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "reset")
RESET = raw(b"", "reset")


def rules(**given):
    """Sweeps and returns only where a scenario asks for them."""
    return {"interval": 900, "base_ejection_time": 900, "max_ejection_percent": 100, **given}


GATEWAY = {"consecutive_gateway_failure": 5, "enforcing_consecutive_gateway_failure": 100}
BOTH = {"consecutive_5xx": 7, **GATEWAY}


def ejected(s, count=1):
    s.await_stat(outlier_detection__ejections_active=count)


def refuse(s, times):
    s.hosts[0].refuse()
    for _ in range(times):
        s.get()


@scenario(AREA, "five 503 in a row eject the only host; then nobody is left (O4)", outlier=rules(), panic=0)
def five_503(s):
    s.get_each(503, 503, 503, 503)
    s.observe("out after four", s.stat("outlier_detection.ejections_active"))
    s.get(503)
    ejected(s)
    s.get()


@scenario(AREA, "a 500 is no gateway error: only the 5xx rule sees it", outlier=rules(**BOTH), panic=0)
def seven_500(s):
    s.get_each(*[500] * 7)
    ejected(s)


@scenario(AREA, "a 404 is a success and ends the run (O5)", outlier=rules(), panic=0)
def run_ended_by_404(s):
    s.get_each(500, 500, 500, 500, 404, 500, 500, 500, 500)
    s.observe("out", s.stat("outlier_detection.ejections_active"))
    s.get(500)
    ejected(s)


@scenario(AREA, "the gateway run is reset by a 500, the 5xx run is not (O6)", panic=0,
          outlier=rules(consecutive_gateway_failure=3, enforcing_consecutive_gateway_failure=100))
def gateway_run_ended_by_500(s):
    s.get_each(503, 503, 500, 503)
    s.observe("out after four", s.stat("outlier_detection.ejections_active"))
    s.get(503)
    ejected(s)


@scenario(AREA, "503 x4, 500, 503 x2: the seventh ejects, by 5xx", outlier=rules(**BOTH), panic=0)
def runs_of_both_kinds(s):
    s.get_each(503, 503, 503, 503, 500, 503)
    s.observe("out after six", s.stat("outlier_detection.ejections_active"))
    s.get(503)
    ejected(s)


@scenario(AREA, "502, 503 and 504 are one kind", outlier=rules(**BOTH), panic=0)
def gateway_codes(s):
    s.get_each(502, 503, 504, 502, 503)
    ejected(s)


@scenario(AREA, "both rules at five: the gateway rule is first, 5xx finds the host out", panic=0,
          outlier=rules(consecutive_5xx=5, **GATEWAY))
def gateway_before_5xx(s):
    s.get_each(*[503] * 5)
    ejected(s)


@scenario(AREA, "refused connects count as 503: ejected by the fifth, as a gateway failure", outlier=rules(**BOTH), panic=0)
def refused_gateway(s):
    refuse(s, 5)
    ejected(s)
    s.get()


@scenario(AREA, "refused connects, only the 5xx rule: by the seventh", outlier=rules(consecutive_5xx=7), panic=0)
def refused_5xx(s):
    refuse(s, 6)
    s.observe("out after six", s.stat("outlier_detection.ejections_active"))
    refuse(s, 1)
    ejected(s)


@scenario(AREA, "refused connects, all as by default: five are five 503 (O7)", outlier=rules(), panic=0)
def refused_by_default(s):
    refuse(s, 5)
    ejected(s)


@scenario(AREA, "split: refused connects are local failures, gateway and 5xx rules do not see them", panic=0,
          outlier=rules(split_external_local_origin_errors=True, **BOTH))
def refused_split(s):
    refuse(s, 5)
    ejected(s)


@scenario(AREA, "split: answers 503 are no local failures (O16)", outlier=rules(split_external_local_origin_errors=True), panic=0)
def answers_503_split(s):
    s.get_each(*[503] * 5)
    ejected(s)


@scenario(AREA, "split: a host that accepts and never answers escapes, for each connect ends its run", panic=0, timeout=0.05,
          outlier=rules(split_external_local_origin_errors=True))
def silent_split(s):
    s.get_each(*[silent()] * 7)
    s.observe("out", s.stat("outlier_detection.ejections_active"))


@scenario(AREA, "not split: timeouts count as 504", outlier=rules(**BOTH), panic=0, timeout=0.05)
def timeouts_are_504(s):
    s.get_each(*[silent()] * 5)
    ejected(s)


@scenario(AREA, "connections reset before an answer count as 503", outlier=rules(**BOTH), panic=0)
def resets_are_503(s):
    s.get_each(*[RESET] * 5)
    ejected(s)


@scenario(AREA, "answers that are no HTTP count as 503", outlier=rules(**BOTH), panic=0)
def garbage_is_503(s):
    s.get_each(*[raw(b"no http\r\n\r\n")] * 5)
    ejected(s)


@scenario(AREA, "an answer cut in its body is a success, then a failure: no run", outlier=rules(**BOTH), panic=0)
def cut_bodies(s):
    s.get_each(*[CUT] * 6)
    s.observe("out", s.stat("outlier_detection.ejections_active"))


@scenario(AREA, "connects that time out count", outlier=rules(consecutive_5xx=2), panic=0, connect_timeout=0.1)
def connect_timeouts(s):
    s.hosts[0].swallow()
    s.get()
    s.get()
    ejected(s)


@scenario(AREA, "one refused connect fails all that wait for it: five waiters are enough", panic=0, connect_timeout=0.5,
          outlier=rules(), limits={"max_connections": 1})
def five_waiters_of_one_connect(s):
    s.hosts[0].swallow()
    calls = [s.start() for _ in range(5)]
    for call in calls:
        s.finish(call)
    ejected(s)


@scenario(AREA, "requests refused by a limit say nothing about the host", panic=0, outlier=rules(consecutive_5xx=2),
          limits={"max_requests": 1})
def refused_by_a_limit(s):
    call = s.start(held(answer()))
    s.reached(call)
    s.get_each(200, 200, 200)
    s.observe("out", s.stat("outlier_detection.ejections_active"))
    s.release(call)


@scenario(AREA, "clients that leave say nothing about the host", outlier=rules(consecutive_5xx=2), panic=0)
def clients_that_leave(s):
    for _ in range(3):
        call = s.start(silent())
        s.reached(call)
        s.leave(call)
        s.await_true(call.script.gone.is_set, "the upstream to see it")
    s.observe("out", s.stat("outlier_detection.ejections_active"))


def failing(s, hosts, status=503):
    """Sends 30 requests; those whose number is below |hosts| in the order of first contact fail."""
    order = []

    def act(wire, script):
        host = script.seen[-1][0]
        if host not in order:
            order.append(host)
        answer(status if order.index(host) < hosts else 200)(wire, script)
    for _ in range(30):
        s.get(act)


@scenario(AREA, "three hosts, default cap of 10 %: nobody is ever ejected (O1)", hosts=3, panic=0,
          outlier={"interval": 60, "base_ejection_time": 60})
def cap_that_rounds_to_nobody(s):
    failing(s, 1)
    s.observe("out", s.stat("outlier_detection.ejections_active"))


@scenario(AREA, "three hosts, cap 50 %: one goes (O2)", hosts=3, panic=0, outlier=rules(max_ejection_percent=50))
def cap_50_of_three(s):
    s.group = "around the ejection"
    failing(s, 1)
    ejected(s)


@scenario(AREA, "three hosts, cap 50 %: the second stays (O3)", hosts=3, panic=0, outlier=rules(max_ejection_percent=50))
def cap_50_refuses_the_second(s):
    s.get_each(200, 200, 200)
    first = s.calls[0].script.seen[0][0]
    second = s.calls[1].script.seen[0][0]
    left = {first: 5, second: 5}
    s.group = "until both had their five"

    def act(wire, script):
        host = script.seen[-1][0]
        bad = left.get(host, 0) > 0
        if bad:
            left[host] -= 1
        answer(503 if bad else 200)(wire, script)
    for _ in range(30):
        s.get(act)
    ejected(s)
    s.await_stat(outlier_detection__ejections_overflow=2)  # by both rules


@scenario(AREA, "cap 100 %: all go, the last too", hosts=3, panic=0, outlier=rules(consecutive_5xx=1))
def all_three(s):
    s.get_each(500, 500, 500)
    ejected(s, 3)
    s.get()


@scenario(AREA, "cap 0: none", panic=0, outlier=rules(max_ejection_percent=0))
def cap_0(s):
    s.get_each(*[503] * 10)
    s.observe("out", s.stat("outlier_detection.ejections_active"))


@scenario(AREA, "a cap of 0 but always_eject_one_host: one", hosts=2, panic=0,
          outlier=rules(max_ejection_percent=0, always_eject_one_host=True))
def always_one(s):
    s.group = "until both had their five"
    for _ in range(10):
        s.get(503)
    ejected(s)


@scenario(AREA, "enforcing 0: detected and logged, not done (O17)", panic=0, outlier=rules(enforcing_consecutive_5xx=0))
def not_enforced(s):
    s.get_each(*[503] * 5)
    s.await_stat(outlier_detection__ejections_detected_consecutive_5xx=1)
    s.get()


@scenario(AREA, "the time is over, the next sweep brings it back, and it counts anew", panic=0,
          outlier=rules(consecutive_5xx=2, interval=0.05, base_ejection_time=0.2))
def back_after_its_time(s):
    s.time_out(lambda: s.get_each(500, 500), 1)
    s.get()
    s.get(500)
    s.observe("out after one", s.stat("outlier_detection.ejections_active"))
    s.time_out(lambda: s.get(500), 1)
    ejected(s, 0)


@scenario(AREA, "the time is over but the sweep is not due: still out", panic=0,
          outlier=rules(consecutive_5xx=1, interval=30, base_ejection_time=0.05))
def back_only_by_a_sweep(s):
    s.get(500)
    ejected(s)
    s.pause(0.5)
    s.get()


@scenario(AREA, "it lasts once, twice, thrice as long, at most the maximum; in sweeps: 1, then 2, 3, 3", panic=0,
          outlier=rules(consecutive_5xx=2, interval=2.5, base_ejection_time=1.75, max_ejection_time=6.2))
def longer_each_time(s):
    s.time_out(lambda: s.get_each(500, 500), 2.5)  # where between two sweeps it begins is chance
    s.observe("sweeps", [s.time_out(lambda: s.get_each(500, 500), 2.5) for _ in range(3)])


@scenario(AREA, "a quiet sweep takes one step back: the second ejection is no longer than the first", panic=0,
          outlier=rules(consecutive_5xx=2, interval=0.2, base_ejection_time=1.2))
def quiet_sweeps_shorten(s):
    first = s.time_out(lambda: s.get_each(500, 500), 1.4)
    s.pause(1.5)
    s.observe("times", [first, s.time_out(lambda: s.get_each(500, 500), 1.4)])


@scenario(AREA, "panic below 50 %: of four hosts three are out, all four are used", hosts=4, panic=50,
          outlier=rules(consecutive_5xx=1))
def panic(s):
    s.group = "until three are out, and after"
    for _ in range(3):
        s.get(500)
    ejected(s, 3)
    for _ in range(8):
        s.get()
    s.observe("hosts used in panic", len({c.script.seen[0][0] for c in s.calls[3:]}))


@scenario(AREA, "exactly 50 % is no panic", hosts=4, panic=50, outlier=rules(consecutive_5xx=1))
def no_panic_at_the_threshold(s):
    s.group = "until two are out, and after"
    s.get_each(500, 500)
    ejected(s, 2)
    for _ in range(6):
        s.get()
    s.observe("hosts used", len({c.script.seen[0][0] for c in s.calls[2:]}))


@scenario(AREA, "cap 50 % with panic below 50 %: never reached", hosts=4, panic=50,
          outlier=rules(consecutive_5xx=1, max_ejection_percent=50))
def cap_never_reaches_panic(s):
    s.group = "until two are out, and after"
    for _ in range(8):
        s.get(500)
    ejected(s, 2)


@scenario(AREA, "no panic threshold (0): the only host out means 503 UH (P5)", panic=0, outlier=rules(consecutive_5xx=1))
def no_panic(s):
    s.get(500)
    ejected(s)
    s.get()


@scenario(AREA, "panic below 50 %, the only host out is used all the same", panic=50, outlier=rules(consecutive_5xx=1))
def only_host_in_panic(s):
    s.get(500)
    ejected(s)
    s.get()


def ten(name, says, out, threshold):
    """Of ten hosts |out| are ejected; how many are used then?"""
    def play(s):
        s.group = "until they are out, and after"
        for _ in range(out):
            s.get(500)
        ejected(s, out)
        for _ in range(20):
            s.get()
        s.observe("hosts used", len({c.script.seen[0][0] for c in s.calls[out:]}))
    play.__name__ = name
    scenario(AREA, says, hosts=10, panic=threshold, outlier=rules(consecutive_5xx=1))(play)


ten("four_of_ten", "panic below 50 %: four of ten are healthy, all ten are used (P1)", 6, 50)
ten("five_of_ten", "panic below 50 %: five of ten are healthy, only they are used (P2)", 5, 50)
ten("eight_of_ten", "panic below 90 %: eight of ten carry all, so there is none (P3)", 2, 90)
ten("seven_of_ten", "panic below 90 %: seven of ten do not carry all: all ten are used (P4)", 3, 90)


# A 503 ejects for less than an interval, so that a return tells of a sweep.
STATISTICAL = {"interval": 4, "base_ejection_time": 0.001, "consecutive_5xx": 1000,
               "consecutive_gateway_failure": 1, "enforcing_consecutive_gateway_failure": 100}


def rates(s, count, good):
    """Right after a sweep, |count| requests to each of the hosts, of which good[i] go well; until
    the next sweep has seen them, and the one after it has brought back who went."""
    s.group = "before the sweep"
    s.time_out(lambda: s.get(503), 4)
    seen = {}

    def act(wire, script):
        host = script.seen[-1][0]
        n = seen.setdefault(host, [len(seen), 0])
        n[1] += 1
        answer(200 if n[1] <= good[n[0]] else 500)(wire, script)
    s.in_step = False
    for _ in range(count * len(good)):
        s.get(act)
    s.pause(STATISTICAL["interval"] + 1)
    ejected(s, 0)


@scenario(AREA, "success rate: one of five at 50 % is out at the sweep (O11)", hosts=5, panic=0,
          outlier=rules(success_rate_request_volume=10, **STATISTICAL))
def success_rate(s):
    rates(s, 10, [5, 10, 10, 10, 10])
    s.await_stat(outlier_detection__ejections_enforced_success_rate=1)


@scenario(AREA, "success rate: one of five at 60 % is out at the sweep (O12)", hosts=5, panic=0,
          outlier=rules(success_rate_request_volume=10, **STATISTICAL))
def success_rate_of_60(s):
    rates(s, 10, [6, 10, 10, 10, 10])
    s.await_stat(outlier_detection__ejections_enforced_success_rate=1)


@scenario(AREA, "success rate: two bad ones of five hide each other (O13)", hosts=5, panic=0,
          outlier=rules(success_rate_request_volume=10, **STATISTICAL))
def success_rate_two_hide(s):
    rates(s, 10, [0, 0, 10, 10, 10])


@scenario(AREA, "success rate: too few requests, nobody is looked at", hosts=5, panic=0,
          outlier=rules(success_rate_request_volume=11, **STATISTICAL))
def success_rate_too_few(s):
    rates(s, 10, [0, 10, 10, 10, 10])


@scenario(AREA, "success rate: only counted where enforcing is 0", hosts=5, panic=0,
          outlier=rules(success_rate_request_volume=10, enforcing_success_rate=0, **STATISTICAL))
def success_rate_not_enforced(s):
    rates(s, 10, [5, 10, 10, 10, 10])
    s.await_stat(outlier_detection__ejections_detected_success_rate=1)


@scenario(AREA, "failure percentage: 85 % is out, 80 % is not (O14)", hosts=5, panic=0,
          outlier=rules(failure_percentage_request_volume=20, enforcing_failure_percentage=100,
                        enforcing_success_rate=0, **STATISTICAL))
def failure_percentage(s):
    rates(s, 20, [3, 4, 20, 20, 20])
    s.await_stat(outlier_detection__ejections_enforced_failure_percentage=1)
