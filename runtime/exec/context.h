/* The context: one device, the switches read when it was created, the log sink, the trace. */
#ifndef RLXVK_CONTEXT_H
#define RLXVK_CONTEXT_H

#include "vk/vk.h"
#include "exec/trace.h"
#include "op/choice/tuning.h"

struct rlxvk_context {
    device *device;
    switches switches;
    log_sink log;
    tuning tuning;        /* measured choices; empty where they are switched off */
    trace *trace;         /* NULL unless RLXVK_TRACE */
    pthread_mutex_t lock; /* of reference counts: the context's, programs', shared memory's */
    uint32_t references;  /* the program's own, until it destroys it, and each holder's */
    bool lock_made;
};

/* Programs and families hold their context, so that it may be destroyed before executables. */
rlxvk_context *context_retain(rlxvk_context *c);
void context_release(rlxvk_context *c);

#endif
