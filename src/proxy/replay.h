/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request, as far as it is kept so that all of it can be sent again. It lies, framed,
 * in the stream's outbuf; how much may, and when it is given up, is said here. What is given up is
 * not lost: it goes on to the host it was going to, and only there.
 */
#ifndef PROXY_REPLAY_H
#define PROXY_REPLAY_H

#include <stdbool.h>

#include "proxy/stream.h"

/* Of a request that has just begun: is its body kept? */
void replay_begin(struct stream *s);

/* More of the body was held: gives it up where that is too much now. */
void replay_check(struct stream *s);

/* Can all that was sent of the request be sent again? */
bool replay_possible(const struct stream *s);

/* May more of the body be held while no host takes it? */
bool replay_has_room(const struct stream *s);

/* There will be no other attempt. */
void replay_forget(struct stream *s);

/* Nothing of the body is needed any more. */
void replay_release(struct stream *s);

#endif
