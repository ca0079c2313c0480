/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/work.h"

#include "admin/pages.h"
#include "base/memory.h"

void *work_begin_stream(struct admin_call *call, size_t size)
{
    call->work = memory_take(size);
    if (call->work == NULL)
        call_refuse(call, 503, "out of memory");
    return call->work;
}

void *work_begin(struct admin_call *call, size_t size)
{
    struct admin_work *w = work_begin_stream(call, size);

    if (w == NULL)
        return NULL;
    w->snapshot = snapshot_take(call->view->snapshot);
    control_read_begin(call->control, &w->reader);
    return w;
}

bool work_goes_on(const struct admin_call *call)
{
    return call->page->text.len < WORK_PIECE && !call->page->text.failed &&
           clock_read(call->view->clock) < call->slice_end;
}

void work_end(struct admin_call *call)
{
    struct admin_work *w = call->work;

    if (w == NULL)
        return;
    call->work = NULL;
    if (w->snapshot != NULL) {
        control_read_end(&w->reader);
        snapshot_drop(w->snapshot);
    }
    w->free(w);
}
