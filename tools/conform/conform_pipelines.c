/*
 * Selects the cases that --pipelines=N runs. Software drivers spend nearly all of a run on
 * compiling pipelines, one for each set of a kernel's constants. Most cases share all their
 * pipelines with others.
 *
 * A case always runs if earlier cases make all its pipelines. Cases that need a new pipeline are
 * sampled: the first for each kernel and op, then every Nth. Lowering decides this, so nothing is
 * compiled. The selection depends only on the cases and the device's profile.
 */
#include "conform/conform.h"

#include <string.h>

static bool is_made(const conform_pipelines *p, const pipeline_request *wanted)
{
    for (size_t i = 0; i < p->made.count; i++)
        if (memcmp(&p->made.items[i], wanted, sizeof *wanted) == 0)
            return true;
    return false;
}

/* The request is zeroed first, so that requests can be compared as bytes. */
static void request_of(const dispatch *d, pipeline_request *out)
{
    memset(out, 0, sizeof *out);
    out->kernel = d->kernel;
    memcpy(out->constants, d->constants, sizeof d->constants);
}

static bool take_schedule(conform_pipelines *p, const schedule *s, uint64_t every)
{
    pipeline_request wanted;
    bool has_all = true, chosen = false;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        request_of(&s->dispatches.items[i], &wanted);
        if (is_made(p, &wanted))
            continue;
        has_all = false;
        chosen = p->wanted[wanted.kernel]++ % every == 0 || chosen;
    }
    for (size_t i = 0; i < s->dispatches.count && chosen; i++) {
        request_of(&s->dispatches.items[i], &wanted);
        if (!is_made(p, &wanted) && !VECTOR_PUSH(&p->made, wanted))
            break; /* out of memory: the pipeline counts as not made, so more cases run */
    }
    return has_all || chosen;
}

typedef struct taking {
    conform_pipelines *pipelines;
    uint64_t every;
    bool take;
} taking;

static void take(void *user, const schedule *s)
{
    taking *t = user;
    t->take = take_schedule(t->pipelines, s, t->every);
}

bool conform_take(conform_pipelines *p, const conform_setup *setup, const conform_case *c,
                  uint64_t every)
{
    taking t = {p, every, true};
    return conform_lower(setup, c, NULL, take, &t) != RLXVK_OK || t.take;
}
