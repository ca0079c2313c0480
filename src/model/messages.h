/* SPDX-License-Identifier: Apache-2.0 */
/* What loops say to one another through io/mailbox.h; the meaning of each field of a message. */
#ifndef MODEL_MESSAGES_H
#define MODEL_MESSAGES_H

enum message_kind {
    /* worker to control: object struct cluster_state (no reference), index host, value triggers, at
       when */
    MESSAGE_OUTLIER,
    /* worker to control: index worker; there is evidence in its ring, and the watch slept */
    MESSAGE_EVIDENCE,
    /* worker to control: index worker; it has drained (or quit) and its loop is about to end */
    MESSAGE_WORKER_DONE,
    /* control to worker: end connections as their requests end, and go on listening */
    MESSAGE_SHED,
    /* control to worker: stop listening, finish what is under way, be gone by |at| */
    MESSAGE_DRAIN,
    /* control to worker: object struct snapshot, with a reference that is now the worker's; adopt
       it */
    MESSAGE_SNAPSHOT,
    /* worker to control: index worker; it has adopted the snapshot of version |value| */
    MESSAGE_ADOPTED,
    /* control to worker: end at once */
    MESSAGE_QUIT,
    /* worker to worker: object struct cluster_state; give up an idle connection or try waiting
       requests */
    MESSAGE_SLOT,
    /* control to worker: object struct cluster_state; a host serves no more: close what
       is idle, and time what is under way on one that left */
    MESSAGE_HEALTH
};

#endif
