/*
 * Chooses the member for the given sizes. If there is none, a new one is compiled for the graph at
 * these sizes. It shares memory with the current member if it can. Then the two change places.
 */
#include "exec/member.h"
#include "exec/cached_bindings.h"
#include "exec/carry.h"
#include "exec/create.h"
#include "exec/infer.h"
#include "exec/leaf.h"
#include "exec/ticket.h"
#include "program/slot.h"

#include <string.h>

/* ---- Sizes ---- */

/* Symbols without a size keep the size of the current member. ROWS comes last, because it follows
 * from BATCH and SEQ. */
static rlxvk_status complete_sizes(const cached_bindings *f, const char *call, binding_list *sizes)
{
    const int64_t *now = f->current == CACHED_NONE ? NULL : f->members.items[f->current].sizes;
    char name[32] = "";
    rlxvk_status status = RLXVK_OK;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < cached_symbol_count(f); i++) {
            rlxvk_binding b = {cached_symbol(f, i), now ? now[i] : -1};
            if (symbol_size(sizes->items, sizes->count, b.symbol) >= 0 ||
                (pass == 0 && b.symbol == RLXVK_ROWS))
                continue;
            symbol_name(b.symbol, &(text){.buffer = name, .size = sizeof name});
            if (b.size >= 0)
                TRY(bind_resolve(&b, 1, sizes));
            else if (pass)
                return status_fail(RLXVK_E_UNBOUND_SYMBOL,
                                   "%s: symbol %s has no size; bind it with rlxvk_bind_symbols, or "
                                   "give an input whose length tells it",
                                   call, name);
        }
error:
    return status;
}

static size_t find_member(const cached_bindings *f, const binding_list *sizes)
{
    for (size_t m = 0; m < f->members.count; m++) {
        bool same = true;
        for (size_t i = 0; i < cached_symbol_count(f) && same; i++)
            same = symbol_size(sizes->items, sizes->count, cached_symbol(f, i)) ==
                   f->members.items[m].sizes[i];
        if (same)
            return m;
    }
    return CACHED_NONE;
}

/* ---- Members ---- */

static void destroy_member(cached_binding *m)
{
    executable_end(m->state);
    memory_free(m->sizes);
    *m = (cached_binding){0};
}

/* Destroys the member that was used longest ago. Returns false if there is only the current one. */
static bool evict(cached_bindings *f)
{
    size_t oldest = CACHED_NONE;
    for (size_t i = 0; i < f->members.count; i++)
        if (i != f->current &&
            (oldest == CACHED_NONE || f->members.items[i].used < f->members.items[oldest].used))
            oldest = i;
    if (oldest == CACHED_NONE)
        return false;
    destroy_member(&f->members.items[oldest]);
    f->members.items[oldest] = f->members.items[--f->members.count];
    if (f->current == f->members.count)
        f->current = oldest;
    f->evictions++;
    return true;
}

static rlxvk_status apply_feeds(const cached_bindings *f, cached_binding *m)
{
    rlxvk_status status = RLXVK_OK;
    if (m->feeds_version == f->feeds_version)
        return RLXVK_OK;
    for (size_t i = 0; i < f->feeds.count; i++) {
        const cached_feed *feed = &f->feeds.items[i];
        TRY(rlxvk_clear_handle_feed(m->state, feed->name));
        if (feed->feed >= 0)
            TRY((feed->prefix ? rlxvk_set_handle_feed_prefix
                              : rlxvk_set_handle_feed)(m->state, feed->name, (size_t)feed->feed));
        if (feed->row_feed >= 0)
            TRY(rlxvk_register_row_feed(m->state, feed->name, (size_t)feed->row_feed));
    }
    m->feeds_version = f->feeds_version;
error:
    return status;
}

static rlxvk_status apply_params(const cached_bindings *f, rlxvk_executable *to)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < f->params.count; i++) {
        const cached_param *p = &f->params.items[i];
        TRY(rlxvk_set_param_typed(to, graph_node(f->graph, p->source)->name, p->bytes, p->size,
                                  p->dtype));
    }
error:
    return status;
}

static bool add_pools(const rlxvk_executable *m, bool lent, pool_list *out)
{
    bool added = true;
    for (int c = 0; c < CLASS_COUNT; c++)
        added = added && pool_add(out, m->pools[c]);
    for (size_t i = 0; i < ARRAY_COUNT(m->detached); i++)
        added = added && pool_add(out, m->detached[i]);
    for (size_t i = 0; i < m->borrowed.count && !lent; i++)
        added = added && pool_add(out, m->borrowed.items[i]);
    return added;
}

/* The options of a new member: the limit of device memory is what the other members leave. Memory
 * of members that were destroyed counts as long as it is borrowed. That may also be memory of an
 * executable of the caller's, which does not count here. */
static rlxvk_status member_options(const rlxvk_executable *e, program_options *out)
{
    const cached_bindings *f = e->bindings;
    pool_list pools = {0};
    bool listed = true;
    *out = f->options;
    for (size_t m = 0; m < f->members.count && out->device_bytes; m++)
        listed = listed && add_pools(f->members.items[m].state ? f->members.items[m].state : e,
                                     f->lent, &pools);
    uint64_t used = pool_device_bytes(&pools);
    if (out->device_bytes)
        out->device_bytes = out->device_bytes > used ? out->device_bytes - used : 1;
    VECTOR_FREE(&pools);
    return listed ? RLXVK_OK : status_fail_memory("executable");
}

/* Compiles a member that shares memory with the current one: params, and inputs without symbols in
 * their shape. The first member shares with the executable that was given for it, if any. */
static rlxvk_status compile_member(rlxvk_executable *e, const rlxvk_graph *bound,
                                   rlxvk_executable **out)
{
    const cached_bindings *f = e->bindings;
    rlxvk_compile_options sharing = f->sharing ? *f->sharing : (rlxvk_compile_options){0};
    size_t most = e->program ? e->program->input_count : 0;
    const char **names = memory_zeroed(most + 1, sizeof *names);
    program_options options;
    rlxvk_status status;
    TRY(member_options(e, &options));
    TRY(names ? RLXVK_OK : status_fail_memory("executable"));
    sharing.bucket_axes = f->axes.items;
    sharing.bucket_axis_count = f->axes.count;
    if (e->program) {
        sharing.share_with = e;
        sharing.shared_inputs = names;
    }
    for (size_t i = 0; i < most; i++) {
        const program_leaf *leaf = e->inputs[i].leaf;
        rlxvk_shape shape = cached_shape(f, leaf->source);
        if (leaf->node != NODE_NONE && !executable_is_own(e, i) && !symbol_in_shape(&shape))
            names[sharing.shared_input_count++] = leaf->name;
    }
    TRY(create_compiled(e->context, bound, &options, &sharing, out));
error:
    memory_free(names);
    return status;
}

static rlxvk_status take_sizes(const cached_bindings *f, const binding_list *sizes,
                               cached_binding *m)
{
    size_t count = cached_symbol_count(f);
    if (!(m->sizes = memory_zeroed(count, sizeof *m->sizes)))
        return status_fail_memory("executable");
    for (size_t i = 0; i < count; i++)
        m->sizes[i] = symbol_size(sizes->items, sizes->count, cached_symbol(f, i));
    return RLXVK_OK;
}

/* If device memory runs out, old members are destroyed to make room. */
static rlxvk_status make_member(rlxvk_executable *e, const binding_list *sizes, cached_binding *out)
{
    cached_bindings *f = e->bindings;
    rlxvk_graph *bound = NULL;
    status_sentence before;
    rlxvk_status status;
    *out = (cached_binding){.feeds_version = UINT64_MAX};
    TRY(take_sizes(f, sizes, out));
    TRY(bind_graph(f->graph, sizes, &bound));
    status_save(&before);
    do
        status = compile_member(e, bound, &out->state);
    while (status == RLXVK_E_OUT_OF_DEVICE_MEMORY && evict(f));
    TRY(status);
    status_restore(&before); /* drops the errors of tries that needed more room */
    TRY(apply_params(f, out->state));
error:
    rlxvk_graph_destroy(bound);
    if (status != RLXVK_OK)
        destroy_member(out);
    return status;
}

/* ---- Changing places ---- */

/* Tickets stay with the caller's struct. All runs are complete, but each ticket must still report
 * how its run ended. */
static void keep_tickets(rlxvk_executable *e, rlxvk_executable *aside)
{
    ticket_state *tickets = e->tickets;
    e->tickets = aside->tickets;
    aside->tickets = tickets;
    e->next_ticket = MAX(e->next_ticket, aside->next_ticket);
}

static void change_places(rlxvk_executable *e, size_t next)
{
    cached_bindings *f = e->bindings;
    cached_binding *m = &f->members.items[next];
    rlxvk_executable *aside = m->state, before = *e;
    *e = *aside;
    e->bindings = f;
    m->state = NULL;
    m->used = ++f->switches;
    before.bindings = NULL;
    if (f->current == CACHED_NONE) {
        e->rng = before.rng;
        memory_free(aside); /* the caller's struct was empty */
    } else {
        *aside = before;
        f->members.items[f->current].state = aside;
        keep_tickets(e, aside);
    }
    f->current = next;
}

static rlxvk_status switch_to(rlxvk_executable *e, size_t next)
{
    cached_binding *m = &e->bindings->members.items[next];
    rlxvk_status status;
    TRY(apply_feeds(e->bindings, m));
    if (e->program) {
        TRY(carry_check(e, m->state));
        TRY(carry_state(e, m->state));
    }
    change_places(e, next);
error:
    return status;
}

/* Makes a new member current. If it cannot become current, it is destroyed. */
static rlxvk_status add_member(rlxvk_executable *e, const binding_list *sizes)
{
    cached_bindings *f = e->bindings;
    cached_binding made;
    rlxvk_status status;
    if (!VECTOR_RESERVE(&f->members, 1))
        return status_fail_memory("executable");
    TRY(make_member(e, sizes, &made));
    f->members.items[f->members.count++] = made;
    status = switch_to(e, f->members.count - 1);
    if (status != RLXVK_OK) {
        destroy_member(&f->members.items[--f->members.count]);
        return status;
    }
    cached_drop_params(f);
    f->misses++;
    while (f->members.count > f->capacity && evict(f))
        ;
error:
    return status;
}

static rlxvk_status bind(rlxvk_executable *e, const char *call, binding_list *sizes)
{
    cached_bindings *f = e->bindings;
    rlxvk_status status;
    TRY(complete_sizes(f, call, sizes));
    size_t next = find_member(f, sizes);
    if (next != CACHED_NONE && next == f->current)
        return RLXVK_OK;
    if (e->program)
        TRY(ticket_flush(e));
    if (next == CACHED_NONE)
        return add_member(e, sizes);
    TRY(switch_to(e, next));
    f->hits++;
error:
    return status;
}

rlxvk_status member_bind_examples(rlxvk_executable *e, const rlxvk_compile_options *sharing)
{
    const symbol_table *t = e->bindings->graph->symbols;
    binding_list sizes = {0};
    rlxvk_status status;
    TRY(bind_resolve(t->sizes[0].items, t->sizes[0].count, &sizes));
    e->bindings->sharing = sharing;
    e->bindings->lent = sharing != NULL;
    status = bind(e, "compile option share_with", &sizes);
    e->bindings->sharing = NULL;
error:
    VECTOR_FREE(&sizes);
    return status;
}

/* ---- Runs ---- */

/* Whether the inputs have the lengths of the current member. Other errors of the inputs are left to
 * the run. */
static bool fits_current(rlxvk_executable *e, const sized_array *inputs)
{
    rlxvk_run_input own;
    uint64_t length;
    for (size_t i = 0; i < inputs->count; i++) {
        const rlxvk_run_input *item = sized_item(SIZED(rlxvk_run_input), inputs, i, &own);
        const input_state *in = leaf_find_input(e, item->name);
        if (!in)
            continue;
        const node *n = graph_node(e->program->source, in->leaf->source);
        storage held = op_node_storage(e->program->source, in->leaf->source);
        if (slot_length(n, held, slot_type_of_input(item), &length) == RLXVK_OK &&
            length != item->length)
            return false;
    }
    return true;
}

rlxvk_status member_bind_run(rlxvk_executable *e, const char *call, const sized_array *inputs)
{
    binding_list sizes = {0};
    rlxvk_status status;
    if (!e || !e->bindings || (!inputs->items && inputs->count))
        return RLXVK_OK; /* the run itself reports errors */
    if (e->program && fits_current(e, inputs))
        return RLXVK_OK;
    TRY(infer_sizes(e->bindings->graph, call, inputs, &sizes));
    TRY(bind(e, call, &sizes));
error:
    VECTOR_FREE(&sizes);
    return status;
}

/* ---- The public calls ---- */

rlxvk_status rlxvk_bind_symbols(rlxvk_executable *executable, const rlxvk_binding *bindings,
                                size_t count)
{
    binding_list sizes = {0};
    rlxvk_status status;
    TRY(status_require(executable, "bind_symbols", "executable"));
    TRY(status_require_items(bindings, count, "bind_symbols", "bindings"));
    if (!executable->bindings)
        return status_fail(
            RLXVK_E_UNSUPPORTED,
            "bind_symbols: the executable was compiled for numbers; compile the graph "
            "with its symbols");
    TRY(bind_resolve(bindings, count, &sizes));
    TRY(bind(executable, "bind_symbols", &sizes));
error:
    VECTOR_FREE(&sizes);
    return status;
}
