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
    pthread_mutex_t lock; /* reference counts of shared memory */
    bool lock_made;
};

#endif
