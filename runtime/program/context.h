/* The context: one device, the switches read at creation, the log sink and the trace. */
#ifndef RLXVK_CONTEXT_H
#define RLXVK_CONTEXT_H

#include "op/choice/tuning.h"
#include "program/trace.h"
#include "vk/vk.h"

struct rlxvk_context {
    device *device;
    switches switches;
    log_sink log;
    tuning tuning;       /* measured choices; empty if they are switched off */
    trace *trace;        /* NULL unless RLXVK_TRACE */
    system_lock lock;    /* of reference counts: the context's, programs', shared memory's */
    uint32_t references; /* one until rlxvk_context_destroy, and one of each holder */
    bool lock_made;
};

/* What only the library's own programs ask of a context. */
typedef struct context_needs {
    unsigned checks; /* bits of enum check_kind, beside those of RLXVK_CHECK */
    bool statistics; /* the driver keeps statistics of pipelines (pipeline_describe), and perhaps
                      * uses none of its caches */
} context_needs;

/* As rlxvk_context_create, with these needs.
 *   E_UNSUPPORTED   the driver tells no statistics */
rlxvk_status context_create(const rlxvk_context_options *options, context_needs needs,
                            rlxvk_context **out_context);
/* Programs and cached bindings hold a reference, so the context may be destroyed before its
 * executables. */
rlxvk_context *context_retain(rlxvk_context *c);
void context_release(rlxvk_context *c);

#endif
