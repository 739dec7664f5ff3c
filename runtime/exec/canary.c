/*
 * Guard bytes are all bytes of an executable's own blocks between its values. In borrowed memory
 * they belong to the lender, so they are not checked here. See canary.h.
 */
#include "exec/canary.h"
#include "exec/transfer.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WRITERS = 3 }; /* named in a message */

/* ---- The list ---- */

static int by_place(const void *a, const void *b)
{
    const location *x = &((const canary *)a)->at, *y = &((const canary *)b)->at;
    if (x->pool != y->pool)
        return x->pool < y->pool ? -1 : 1;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The end of a value, rounded up to a whole word. */
static uint64_t end_of(const location *l)
{
    return l->offset + round_up(l->bytes, 4);
}

/* Makes an entry for each value and one for each block. A value's entry stands for the gap behind
 * it, and a block's entry for the gap before its first value. */
static rlxvk_status list_places(rlxvk_executable *e)
{
    memory_pool *pools[CLASS_COUNT + ARRAY_COUNT(e->detached)];
    memcpy(pools, e->pools, sizeof e->pools);
    memcpy(pools + CLASS_COUNT, e->detached, sizeof e->detached);
    size_t most = e->program->plan.value_count;
    for (size_t i = 0; i < ARRAY_COUNT(pools); i++)
        most += pools[i] ? pools[i]->count : 0;
    if (!(e->canaries = memory_zeroed(most + 1, sizeof *e->canaries)))
        return status_fail_memory("canaries");
    for (size_t i = 0; i < ARRAY_COUNT(pools); i++)
        for (uint32_t b = 0; pools[i] && b < pools[i]->count; b++)
            e->canaries[e->canary_count++] =
                (canary){.value = NODE_NONE, .at = {pools[i], b, 0, 0}};
    for (uint32_t v = 0; v < e->program->plan.value_count; v++)
        for (size_t i = 0; i < ARRAY_COUNT(pools); i++)
            if (pools[i] && e->locations[v].pool == pools[i])
                e->canaries[e->canary_count++] = (canary){.value = v, .at = e->locations[v]};
    return RLXVK_OK;
}

/* Sets each gap: from a value's end to the next value, or to the end of the block. */
static void measure(rlxvk_executable *e)
{
    qsort(e->canaries, e->canary_count, sizeof *e->canaries, by_place);
    for (uint32_t i = 0; i < e->canary_count; i++) {
        location *at = &e->canaries[i].at;
        const location *next = i + 1 < e->canary_count ? &e->canaries[i + 1].at : NULL;
        bool last = !next || next->pool != at->pool || next->block != at->block;
        uint64_t from = end_of(at), to = last ? location_block(at)->size / 4 * 4 : next->offset;
        at->offset = from;
        at->bytes = to > from ? to - from : 0;
    }
}

/* The word with which the guard bytes of canary `index` are filled now. */
static uint32_t word_of(const rlxvk_executable *e, size_t index)
{
    uint32_t scattered = (uint32_t)(index + 1) * 0x9e3779b1u >> 12;
    return e->canary_fills % 2 ? 0x7fc00000u | scattered : 0x5f000000u | scattered;
}

static rlxvk_status fill(rlxvk_executable *e)
{
    rlxvk_status status;
    e->canary_fills++;
    TRY(transfer_begin(e));
    for (uint32_t i = 0; i < e->canary_count; i++) {
        const location *at = &e->canaries[i].at;
        if (at->bytes)
            e->device->fn.CmdFillBuffer(e->transfer, location_block(at)->buffer, at->offset,
                                        at->bytes, word_of(e, i));
    }
    TRY(transfer_end(e));
    return RLXVK_OK;
error:
    e->canary_fills--; /* nothing was submitted, so the old pattern is still there */
    return status;
}

rlxvk_status canary_prepare(rlxvk_executable *e)
{
    rlxvk_status status = RLXVK_OK;
    if (!e->program->options.canary)
        return RLXVK_OK;
    TRY(list_places(e));
    measure(e);
    TRY(fill(e));
error:
    return status;
}

/* ---- The check ---- */

/* Lists every kernel that writes the value, with the operand that is written, and the node. */
static void append_writers(const program *p, uint32_t value, text *out)
{
    uint32_t found = 0;
    char label[NODE_LABEL];
    for (size_t i = 0; i < p->schedule.dispatches.count; i++) {
        const dispatch *d = &p->schedule.dispatches.items[i];
        for (uint32_t k = 0; k < d->operand_count; k++)
            if (d->operands[k].value == value && (d->operands[k].access & ACCESS_WRITE) &&
                found++ < MOST_WRITERS)
                text_append(out, "%s operand %u of kernel '%s' for %s", found > 1 ? "," : "", k,
                            kernel_find(d->kernel)->name, op_node_label(p->graph, d->node, label));
    }
    if (found > MOST_WRITERS)
        text_append(out, ", and %u more", found - MOST_WRITERS);
    if (!found)
        text_append(out, " no kernel: one that writes before it reaches this far");
}

static rlxvk_status fail(const rlxvk_executable *e, const canary *c, uint64_t offset,
                         uint64_t changed)
{
    const program *p = e->program;
    char who[NODE_LABEL + 32] = "", label[NODE_LABEL], writers[768] = "";
    text name = {who, sizeof who, 0}, list = {writers, sizeof writers, 0};
    if (c->value == NODE_NONE)
        return status_fail(RLXVK_E_RANGE,
                           "run: words written before the first value of a block of memory: %llu, "
                           "the first at byte %llu; bound the stores of this graph's kernels by "
                           "their operands' sizes",
                           (unsigned long long)changed, (unsigned long long)offset);
    if (c->value < p->graph->nodes.count)
        text_append(&name, "%s", op_node_label(p->graph, c->value, label));
    else
        text_append(&name, "temporary %llu",
                    (unsigned long long)(c->value - p->graph->nodes.count));
    append_writers(p, c->value, &list);
    return status_fail(
        RLXVK_E_RANGE,
        "run: words written behind the end of %s: %llu, the first %llu bytes behind its %llu; it "
        "is written by%s; bound the kernel's stores by its operand's size",
        who, (unsigned long long)changed, (unsigned long long)offset,
        (unsigned long long)p->plan.slots[c->value].bytes, writers);
}

static rlxvk_status check_one(rlxvk_executable *e, const canary *c, uint32_t *words)
{
    uint32_t wanted = word_of(e, (size_t)(c - e->canaries));
    uint64_t first = 0, changed = 0;
    rlxvk_status status;
    TRY(transfer_read(e, &c->at, words, c->at.bytes));
    for (uint64_t i = c->at.bytes / 4; i-- > 0;)
        if (words[i] != wanted) {
            first = i;
            changed++;
        }
    if (changed)
        status = fail(e, c, first * 4, changed);
error:
    return status;
}

rlxvk_status canary_check(rlxvk_executable *e)
{
    uint64_t most = 0;
    rlxvk_status status = RLXVK_OK;
    if (!e->canary_count)
        return RLXVK_OK;
    for (uint32_t i = 0; i < e->canary_count; i++)
        most = MAX(most, e->canaries[i].at.bytes);
    uint32_t *words = memory_allocate(most + 4);
    if (!words)
        return status_fail_memory("canaries");
    for (uint32_t i = 0; i < e->canary_count && status == RLXVK_OK; i++)
        status = check_one(e, &e->canaries[i], words);
    memory_free(words);
    if (status == RLXVK_OK || status == RLXVK_E_RANGE) {
        rlxvk_status filled = fill(e); /* keeps the sentence if it succeeds */
        status = filled == RLXVK_OK ? status : filled;
    }
    return status;
}
