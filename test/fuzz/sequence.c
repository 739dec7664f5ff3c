/*
 * Fuzzes sequences of calls on executables. Each result and each value read is compared with the
 * model (support/model.h): params, runs, tickets, handles, feeds, row feeds, clones, shared memory,
 * and calls that must be refused and change nothing. A difference prints all calls so far. The
 * first bytes choose context, graph and options. Then every few bytes are a call.
 */
#include "fuzz.h"
#include "program/context.h"
#include "support/choice.h"
#include "support/story.h"

#include <rlxvk_symbols.h>

enum { CONTEXTS = 3, MOST_CALLS = 40, MOST_EXECUTABLES = 4, MOST_ITEMS = 6, MOST_IN_FLIGHT = 4 };

/* One run. The library keeps the array of outputs until its wait. */
typedef struct flight {
    rlxvk_run_input inputs[MOST_ITEMS];
    rlxvk_run_output outputs[MOST_ITEMS];
    size_t input_count, output_count, bytes[MOST_ITEMS]; /* bytes: the size of each input's data */
    model_bytes expected[MOST_ITEMS];
    status_set ends;
    rlxvk_ticket ticket; /* 0: free */
} flight;

typedef struct live {
    rlxvk_executable *real;
    model_executable *model; /* NULL: free */
    flight flights[MOST_IN_FLIGHT];
    bool rows_pending;
} live;

static struct {
    rlxvk_context *contexts[CONTEXTS], *context;
    /* A run that keeps the device busy for a while. Then runs submitted after it have not begun
     * when the next calls are made. */
    rlxvk_executable *ballasts[CONTEXTS], *ballast;
    rlxvk_ticket ballast_run;
    live lives[MOST_EXECUTABLES];
} world;

static unsigned number_of(const live *l)
{
    return (unsigned)(l - world.lives);
}

/* ---- Runs ---- */

static void add_input(flight *f, const model_executable *m, const char *name)
{
    const model_node *n = node_named(m, MODEL_INPUT, name);
    rlxvk_run_input *item = &f->inputs[f->input_count++];
    *item = (rlxvk_run_input){.name = name};
    if (!n) {
        item->data = block(0);
        return;
    }
    size_t bytes;
    choose_type(n, &item->dtype, &item->f32_words);
    item->data = seldom_null(fill(n, n->dtype, !item->f32_words, &bytes));
    f->bytes[f->input_count - 1] = item->f32_words ? 4 * bytes : bytes;
    item->length = item->f32_words ? model_words(n) : model_numel(&n->shape);
    if (!choices.calm && seldom(40))
        item->length ^= 1; /* not read beyond the end, because it is refused */
}

static void choose_inputs(flight *f, const model_executable *m)
{
    uint32_t mode = choices.calm ? 0 : choose(8), mask = mode < 4   ? ~0u
                                                         : mode < 5 ? 0
                                                                    : fuzz_byte(&choices.in);
    for (uint8_t id = 0; id < m->graph->node_count; id++)
        if (m->graph->nodes[id].op == MODEL_INPUT && mask >> id & 1)
            add_input(f, m, m->graph->nodes[id].name);
    if (mode == 7) /* an input twice, or an unknown one */
        add_input(f, m, choose_name(m, MODEL_INPUT));
}

static void choose_outputs(flight *f, const model_executable *m)
{
    size_t count = !choices.calm && seldom(4) ? choose(MOST_ITEMS) : m->graph->output_count;
    for (size_t i = 0; i < count; i++) {
        size_t index = count == m->graph->output_count ? i : choose_output(m);
        rlxvk_run_output *item = &f->outputs[f->output_count++];
        *item = (rlxvk_run_output){.index = index};
        if (index >= m->graph->output_count) {
            item->buffer = block(0);
            continue;
        }
        const model_node *n = &m->graph->nodes[m->graph->outputs[index]];
        choose_type(n, &item->dtype, &item->f32_words);
        item->length = item->f32_words ? model_words(n) : model_numel(&n->shape);
        item->buffer = seldom_null(block(8 * item->length));
        if (!choices.calm && seldom(40))
            item->length ^= 1;
    }
}

static void tell_flight(const flight *f)
{
    for (size_t i = 0; i < f->input_count; i++) {
        const rlxvk_run_input *item = &f->inputs[i];
        bool words = item->f32_words || item->dtype == RLXVK_F32;
        tell(" %s[%zu of %s]", text_of(item->name), item->length,
             type_name(item->dtype, item->f32_words));
        if (item->length && item->length % 2 == 0)
            tell_bytes("=", words, item->data, f->bytes[i]);
    }
    tell(" ->");
    for (size_t i = 0; i < f->output_count; i++)
        tell(" %zu[%zu of %s]", f->outputs[i].index, f->outputs[i].length,
             type_name(f->outputs[i].dtype, f->outputs[i].f32_words));
}

static void release_flight(flight *f)
{
    for (size_t i = 0; i < f->input_count; i++)
        free((void *)f->inputs[i].data);
    for (size_t i = 0; i < f->output_count; i++)
        free(f->outputs[i].buffer);
    *f = (flight){0};
}

static void check_results(const live *l, const flight *f)
{
    for (size_t i = 0; i < f->output_count; i++) {
        const rlxvk_run_output *item = &f->outputs[i];
        uint8_t id = l->model->graph->outputs[item->index];
        rlxvk_dtype dtype = l->model->graph->nodes[id].dtype;
        bool words = item->f32_words || dtype == RLXVK_F32 || dtype == RLXVK_C64;
        expect_bytes("output", item->index, words, item->buffer, &f->expected[i]);
    }
}

static void recover(live *l);

/* Whether the run did not take place. If `refused` has ACCEPTED, too, the status decides. */
static bool is_refused(status_set refused, rlxvk_status status)
{
    bool doubtful = refused & ACCEPTED, named = status != RLXVK_OK && refused & STATUS(status);
    return refused && (named || !doubtful);
}

static void step_run(live *l)
{
    flight f = {0};
    choose_inputs(&f, l->model);
    choose_outputs(&f, l->model);
    tell("e%u run", number_of(l));
    tell_flight(&f);
    status_set refused =
        model_refusals(l->model, f.inputs, f.input_count, f.outputs, f.output_count);
    bool nothing = !choices.calm && f.input_count && seldom(64);
    if (nothing) {
        tell(" (NULL for the inputs)");
        refused = also_null(refused);
    }
    rlxvk_status status =
        rlxvk_run(l->real, nothing ? NULL : f.inputs, f.input_count, f.outputs, f.output_count);
    if (is_refused(refused, status)) {
        (void)expect(status, refused);
    } else {
        l->rows_pending = false;
        f.ends =
            model_run(l->model, f.inputs, f.input_count, f.outputs, f.output_count, f.expected);
        (void)expect(status, f.ends);
        if (!(f.ends & STATUS(RLXVK_E_CUSTOM)))
            check_results(l, &f);
    }
    bool failed = f.ends & STATUS(RLXVK_E_CUSTOM);
    release_flight(&f);
    if (failed)
        recover(l);
}

/* After a run that failed half way: runs with every input and checks every output. */
static void recover(live *l)
{
    choices.calm = true;
    step_run(l);
    choices.calm = false;
}

/* Only results of MODEL_SOLVE can be infinite or NaN. No node may be outside its bound. */
static void step_first_bad_node(live *l)
{
    flight f = {0};
    rlxvk_bad_node bad = {0};
    rlxvk_wrong_node odd;
    size_t count = 0;
    choose_inputs(&f, l->model);
    status_set refused = model_refusals(l->model, f.inputs, f.input_count, NULL, 0);
    if (refused & (STATUS(RLXVK_E_UNSET_PARAM) | STATUS(RLXVK_E_MISSING_INPUT))) {
        release_flight(&f); /* may be zeros or an error */
        return;
    }
    tell("e%u first bad node", number_of(l));
    tell_flight(&f);
    model_executable *trial = model_clone(l->model);
    status_set end =
        refused ? refused : model_run(trial, f.inputs, f.input_count, NULL, 0, f.expected);
    model_destroy(trial);
    bool singular = !refused && end & STATUS(RLXVK_E_SINGULAR);
    end = end == STATUS(RLXVK_E_SINGULAR) ? ACCEPTED : end;
    bool ran = expect(rlxvk_first_bad_node(l->real, f.inputs, f.input_count, &bad), end);
    rlxvk_status status =
        rlxvk_first_wrong_node(l->real, f.inputs, f.input_count, &odd, NULL, 0, &count);
    if (expect(status, end) && ran && (bad.found != singular || count)) {
        tell("DIFFERS: bad %d, singular %d, wrong nodes %zu", bad.found, singular, count);
        differ();
    }
    l->rows_pending = false;
    release_flight(&f);
}

static flight *free_flight(live *l)
{
    for (int i = 0; i < MOST_IN_FLIGHT; i++)
        if (!l->flights[i].ticket)
            return &l->flights[i];
    return NULL;
}

static void wait_for_ballast(void)
{
    if (world.ballast_run)
        FUZZ_CHECK(rlxvk_wait(world.ballast, world.ballast_run) == RLXVK_OK, "%s",
                   rlxvk_last_error());
    world.ballast_run = 0;
}

static void drop_ballast(void)
{
    wait_for_ballast();
    tell("something long before:\n");
    FUZZ_CHECK(rlxvk_submit(world.ballast, NULL, 0, NULL, 0, &world.ballast_run) == RLXVK_OK, "%s",
               rlxvk_last_error());
}

static void step_submit(live *l)
{
    flight *slot = free_flight(l), f = {0};
    rlxvk_ticket ticket = 0;
    bool busy = l->model->in_flight >= l->model->max_in_flight;
    choose_inputs(&f, l->model);
    choose_outputs(&f, l->model);
    if (world.ballast && seldom(6))
        drop_ballast();
    /* The library keeps the array of outputs, so it must be that of the flight that stays. */
    flight *kept = slot ? slot : &f;
    *kept = f;
    tell("e%u submit", number_of(l));
    tell_flight(kept);
    status_set refused = model_refusals(l->model, kept->inputs, kept->input_count, kept->outputs,
                                        kept->output_count);
    if (busy)
        refused = (refused & ~ACCEPTED) | STATUS(RLXVK_E_BUSY);
    rlxvk_status status = rlxvk_submit(l->real, kept->inputs, kept->input_count, kept->outputs,
                                       kept->output_count, &ticket);
    if (is_refused(refused, status)) {
        (void)expect(status, refused);
        release_flight(kept);
        return;
    }
    l->rows_pending = false;
    kept->ends = model_run(l->model, kept->inputs, kept->input_count, kept->outputs,
                           kept->output_count, kept->expected);
    if (kept->ends & STATUS(RLXVK_E_CUSTOM)) {
        (void)expect(status, kept->ends);
        release_flight(kept);
        recover(l);
        return;
    }
    (void)expect(status, ACCEPTED);
    kept->ticket = ticket;
    l->model->in_flight++;
}

static void wait_for(live *l, flight *f)
{
    tell("e%u wait for run %llu", number_of(l), (unsigned long long)f->ticket);
    (void)expect(rlxvk_wait(l->real, f->ticket), f->ends);
    check_results(l, f);
    release_flight(f);
    l->model->in_flight--;
}

static void wait_for_all(live *l)
{
    for (int i = 0; i < MOST_IN_FLIGHT; i++)
        if (l->flights[i].ticket)
            wait_for(l, &l->flights[i]);
}

static void step_wait(live *l)
{
    flight *f = &l->flights[choose(MOST_IN_FLIGHT)];
    for (int i = 0; i < MOST_IN_FLIGHT && !f->ticket; i++)
        f = &l->flights[i];
    if (f->ticket && !seldom(16)) {
        wait_for(l, f);
        return;
    }
    rlxvk_ticket none = choose(2) * 1000u;
    tell("e%u wait for run %llu", number_of(l), (unsigned long long)none);
    (void)expect(rlxvk_wait(l->real, none), STATUS(RLXVK_E_INDEX));
}

/* ---- Handles ---- */

static void step_bind(live *l)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    const model_node *n = node_named(l->model, MODEL_INPUT, name);
    size_t length = n ? model_numel(&n->shape) : 0, bytes = 0;
    bool typed = choose(2);
    rlxvk_dtype dtype = n && typed && !seldom(12) ? n->dtype : RLXVK_F32;
    void *data = seldom_null(n ? fill(n, n->dtype, true, &bytes) : block(0));
    length = seldom(24) ? length ^ 1 : length;
    tell("e%u bind %s[%zu of %s]", number_of(l), text_of(name), length, rlxvk_dtype_name(dtype));
    if (n && length == model_numel(&n->shape))
        tell_bytes("=", dtype == RLXVK_F32, data, bytes);
    status_set allowed = model_bind(l->model, name, data, length, (model_type){dtype, false});
    (void)expect(typed ? rlxvk_bind_handle_as(l->real, name, data, length, dtype)
                       : rlxvk_bind_handle(l->real, name, data, length),
                 allowed);
    free(data);
}

static void step_unbind(live *l)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    tell("e%u unbind %s", number_of(l), text_of(name));
    (void)expect(rlxvk_unbind_handle(l->real, name), model_unbind(l->model, name));
}

static void check_has_handles(const live *l)
{
    for (uint8_t id = 0; id < l->model->graph->node_count; id++) {
        const model_node *n = &l->model->graph->nodes[id];
        if (n->op != MODEL_INPUT)
            continue;
        bool has = rlxvk_has_handle(l->real, n->name);
        if (has != model_has_handle(l->model, n->name)) {
            tell("DIFFERS: e%u has %s handle '%s'", number_of(l), has ? "a" : "no", n->name);
            differ();
        }
    }
}

static void read_handle(live *l, const char *name, size_t length, rlxvk_dtype dtype)
{
    model_bytes wanted;
    void *values = block(8 * length);
    tell("e%u read handle %s[%zu of %s]", number_of(l), text_of(name), length,
         rlxvk_dtype_name(dtype));
    status_set allowed =
        model_read_handle(l->model, name, (model_type){dtype, false}, length, &wanted);
    bool nowhere = length && seldom(48), typed = dtype != RLXVK_F32 || choose(2);
    void *to = nowhere ? NULL : values;
    if (expect(typed ? rlxvk_read_handle_as(l->real, name, to, length, dtype)
                     : rlxvk_read_handle(l->real, name, to, length),
               nowhere ? also_null(allowed) : allowed))
        expect_bytes("the handle", 0, dtype == RLXVK_F32, values, &wanted);
    free(values);
}

static void step_read_handle(live *l)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    const model_node *n = node_named(l->model, MODEL_INPUT, name);
    read_handle(l, name, (n ? model_numel(&n->shape) : 1) + seldom(24), node_dtype(n));
}

static void step_set_feed(live *l, bool rows)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    size_t index = choose_output(l->model);
    bool prefix = !rows && choose(4);
    if (!may_feed(l->model, name, index))
        return;
    tell("e%u %s %s <- %zu", number_of(l), rows ? "row feed" : "feed", text_of(name), index);
    rlxvk_status status = (rows     ? rlxvk_register_row_feed
                           : prefix ? rlxvk_set_handle_feed_prefix
                                    : rlxvk_set_handle_feed)(l->real, name, index);
    (void)expect(status, rows ? model_register_row_feed(l->model, name, index)
                              : model_set_feed(l->model, name, index, prefix));
}

/* Only feeds see the extent, because no input has a bucket. */
static void step_extent(live *l)
{
    int64_t upper = (int64_t)choose(8) - seldom(8), actual = choose(8);
    bool clear = choose(4) == 0;
    actual = clear ? 0 : actual;
    upper = clear ? 0 : upper;
    tell("e%u extent %lld of %lld", number_of(l), (long long)actual, (long long)upper);
    status_set allowed =
        !clear && upper == 0 ? STATUS(RLXVK_E_EXTENT) : model_set_extent(l->model, actual, upper);
    (void)expect(clear ? rlxvk_clear_active_extent(l->real)
                       : rlxvk_set_active_extent(l->real, actual, upper),
                 allowed);
}

static void step_clear_feed(live *l)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    tell("e%u clear feed %s", number_of(l), text_of(name));
    (void)expect(rlxvk_clear_handle_feed(l->real, name), model_clear_feed(l->model, name));
}

static void step_read_fed_output(live *l)
{
    const char *name = choose_name(l->model, MODEL_INPUT);
    int id = model_find(l->model, MODEL_INPUT, name);
    int feed = id < 0 ? -1 : l->model->leaves[id].feed;
    const model_node *n = feed < 0 ? NULL : &l->model->graph->nodes[l->model->graph->outputs[feed]];
    size_t length = seldom(24) + (n ? model_numel(&n->shape) : 0);
    rlxvk_dtype dtype = node_dtype(n);
    model_bytes wanted;
    void *values = block(8 * length);
    tell("e%u read fed output %s[%zu]", number_of(l), text_of(name), length);
    bool typed = dtype != RLXVK_F32 || choose(2);
    if (expect(typed ? rlxvk_read_fed_output_as(l->real, name, values, length, dtype)
                     : rlxvk_read_fed_output(l->real, name, values, length),
               model_read_fed_output(l->model, name, (model_type){dtype, false}, length,
                                     &wanted)) &&
        model_is_settled(l->model, (size_t)feed))
        expect_bytes("the fed output", 0, dtype == RLXVK_F32, values, &wanted);
    free(values);
}

static void step_feed_rows(live *l)
{
    static const size_t lengths[] = {2, 1, 4, 0, 3, 2, SIZE_MAX / 2 + 1, 2};
    size_t length = lengths[choose(8)], from = choose(6), to = choose(5);
    for (uint8_t id = 0; id < l->model->graph->node_count; id++)
        if (l->model->leaves[id].row_feed >= 0 &&
            !model_is_settled(l->model, (size_t)l->model->leaves[id].row_feed))
            return;
    tell("e%u feed rows %zu -> %zu of %zu", number_of(l), from, to, length);
    l->rows_pending |= expect(rlxvk_feed_rows(l->real, from, to, length),
                              model_feed_rows(l->model, from, to, length));
}

static void read_row(live *l, size_t index, size_t row, size_t length)
{
    const model_graph *g = l->model->graph;
    const model_node *n = index < g->output_count ? &g->nodes[g->outputs[index]] : NULL;
    rlxvk_dtype dtype = node_dtype(n);
    model_bytes wanted;
    void *values = block(8 * (length < MODEL_MAX_WORDS ? length : 0));
    tell("e%u read row %zu of %zu of output %zu", number_of(l), row, length, index);
    bool typed = dtype != RLXVK_F32 || choose(2);
    if (expect(typed ? rlxvk_read_output_row_as(l->real, index, row, length, values, dtype)
                     : rlxvk_read_output_row(l->real, index, row, length, values),
               model_read_output_row(l->model, index, row, length, dtype, &wanted)) &&
        model_is_settled(l->model, index))
        expect_bytes("the row of output", index, dtype == RLXVK_F32, values, &wanted);
    free(values);
}

static void step_read_row(live *l)
{
    static const size_t lengths[] = {2, 1, 4, 0, 3, 2, SIZE_MAX / 2 + 1, 8};
    size_t index = choose_output(l->model), row = choose(5);
    read_row(l, index, row, lengths[choose(8)]);
}

/* ---- Params ---- */

static void step_set_param(live *l)
{
    const char *name = choose_name(l->model, MODEL_PARAM);
    const model_node *n = node_named(l->model, MODEL_PARAM, name);
    bool plain = n && n->dtype == RLXVK_F32, bytes = plain == seldom(4);
    size_t length = 0;
    status_set refused = 0;
    rlxvk_param_item item;
    void *data = seldom_null(n ? fill(n, n->dtype, bytes, &length) : block(0));
    length = seldom(24) ? length ^ 1 : length;
    tell("e%u set param %s[%zu%s]", number_of(l), text_of(name), length, bytes ? " bytes" : "");
    if (bytes)
        item = model_item_of_bytes(l->model, name, data, length, &refused);
    else
        item = model_item_of_values(l->model, name, data, length, &refused);
    status_set allowed = refused ? also_null(refused | STATUS(RLXVK_E_LENGTH))
                                 : model_set_params(l->model, &item, 1);
    (void)expect(bytes ? rlxvk_set_param_bytes(l->real, name, data, length)
                       : rlxvk_set_param(l->real, name, data, length),
                 allowed);
    free(data);
}

static void step_set_params(live *l)
{
    rlxvk_param_item items[3];
    size_t count = choose(3) + (size_t)choose(2);
    tell("e%u set params", number_of(l));
    for (size_t i = 0; i < count; i++) {
        const char *name = choose_name(l->model, MODEL_PARAM);
        const model_node *n = node_named(l->model, MODEL_PARAM, name);
        rlxvk_dtype dtype = n && !seldom(4) ? n->dtype : (rlxvk_dtype)choose(RLXVK_DTYPE_COUNT + 1);
        size_t length = 0;
        bool known =
            n && dtype < RLXVK_DTYPE_COUNT && (dtype == RLXVK_C64) == (n->dtype == RLXVK_C64);
        void *data = seldom_null(known ? fill(n, dtype, true, &length) : block(0));
        items[i] = (rlxvk_param_item){name, data, seldom(24) ? length ^ 1 : length, dtype};
        tell(" %s[%zu bytes of %s]", text_of(name), items[i].length, rlxvk_dtype_name(dtype));
    }
    status_set allowed = model_set_params(l->model, items, count);
    rlxvk_status status = count == 1 ? rlxvk_set_param_typed(l->real, items[0].name, items[0].bytes,
                                                             items[0].length, items[0].dtype)
                                     : rlxvk_set_params(l->real, items, count);
    (void)expect(status, allowed);
    for (size_t i = 0; i < count; i++)
        free((void *)items[i].bytes);
}

static void read_param(live *l, const char *name, size_t extra)
{
    const model_node *n = node_named(l->model, MODEL_PARAM, name);
    rlxvk_dtype dtype = node_dtype(n);
    size_t length = (n ? model_numel(&n->shape) : 1) + extra, size = rlxvk_dtype_size(dtype);
    model_bytes wanted;
    void *values = block(8 * length);
    tell("e%u read param %s[%zu of %s]", number_of(l), text_of(name), length,
         rlxvk_dtype_name(dtype));
    bool typed = dtype != RLXVK_F32 || choose(2);
    rlxvk_status status = typed
                              ? rlxvk_read_param_typed(l->real, name, values, length * size, dtype)
                              : rlxvk_read_param(l->real, name, values, length);
    if (expect(status,
               model_read_param(l->model, name, (model_type){dtype, typed && dtype == RLXVK_F32},
                                length, &wanted)))
        expect_bytes("the param", 0, dtype == RLXVK_F32, values, &wanted);
    free(values);
}

static void step_read_param(live *l)
{
    const char *name = choose_name(l->model, MODEL_PARAM);
    read_param(l, name, seldom(24));
}

/* ---- Random numbers ---- */

static void step_rng(live *l)
{
    rlxvk_rng_options o = choose_rng(), now;
    bool bad = seldom(16);
    if (bad)
        o.backend = (rlxvk_rng_backend)7;
    tell("e%u set rng seed %llu backend %d step %llu%s", number_of(l), (unsigned long long)o.seed,
         (int)o.backend, (unsigned long long)o.step, o.advance_per_run ? " advancing" : "");
    if (expect(rlxvk_set_rng(l->real, &o), bad ? STATUS(RLXVK_E_ATTR) : ACCEPTED))
        l->model->rng = o;
    rlxvk_get_rng(l->real, &now);
    const rlxvk_rng_options *m = &l->model->rng;
    if (now.seed != m->seed || now.backend != m->backend || now.step != m->step ||
        now.advance_per_run != m->advance_per_run) {
        tell("DIFFERS: step %llu, the model has %llu", (unsigned long long)now.step,
             (unsigned long long)m->step);
        differ();
    }
}

/* ---- Executables ---- */

static live *free_live(void)
{
    for (int i = 0; i < MOST_EXECUTABLES; i++)
        if (!world.lives[i].model)
            return &world.lives[i];
    return NULL;
}

static live *choose_live(void)
{
    live *l = &world.lives[choose(MOST_EXECUTABLES)];
    for (int i = 0; i < MOST_EXECUTABLES && !l->model; i++)
        l = &world.lives[i];
    return l->model ? l : NULL;
}

/* Row feeds may wait for the next run. This makes them now. */
static void flush_rows(live *l)
{
    if (l->rows_pending)
        read_row(l, 0, 0, 0);
    l->rows_pending = false;
}

/* Waits for all that share memory with `l`, because they must not run at the same time. */
static bool settle_sharers(const live *l)
{
    bool any = false;
    for (int i = 0; i < MOST_EXECUTABLES; i++) {
        live *other = &world.lives[i];
        if (other == l || !other->model || !model_shares(l->model, other->model))
            continue;
        wait_for_all(other);
        flush_rows(other);
        any = true;
    }
    return any;
}

static void destroy(live *l)
{
    if (settle_sharers(l))
        flush_rows(l);
    tell("e%u destroy\n", number_of(l));
    rlxvk_executable_destroy(l->real);
    model_destroy(l->model);
    for (int i = 0; i < MOST_IN_FLIGHT; i++)
        release_flight(&l->flights[i]);
    *l = (live){0};
}

static void step_compile(void)
{
    live *l = free_live(), *other = choose_live();
    const model_graph *g = &model_graphs[choose((uint32_t)model_graph_count)];
    const char *shared[MODEL_MAX_NODES];
    rlxvk_rng_options rng;
    rlxvk_graph *graph = NULL;
    if (!l)
        return;
    if (other && choose(2))
        g = other->model->graph;
    rlxvk_compile_options o = choose_options(g, &rng);
    o.shared_inputs = shared;
    uint8_t mask = fuzz_byte(&choices.in);
    other = other && choose(3) ? other : NULL;
    for (uint8_t id = 0; other && id < g->node_count; id++)
        if (g->nodes[id].op == MODEL_INPUT && mask >> id & 1)
            shared[o.shared_input_count++] = g->nodes[id].name;
    o.share_with = other ? other->real : NULL;
    status_set allowed = other ? model_sharing_allows(g, &o, other->model) : ACCEPTED;
    tell("e%u compile '%s'", number_of(l), g->name);
    tell_options(&o);
    if (other)
        tell(", sharing with e%u params", number_of(other));
    for (size_t i = 0; i < o.shared_input_count; i++)
        tell(" %s", shared[i]);
    FUZZ_CHECK(model_build(g, &graph) == RLXVK_OK, "%s: %s", g->name, rlxvk_last_error());
    if (expect(rlxvk_compile(world.context, graph, &o, &l->real), allowed))
        l->model = model_compile(g, &o, other ? other->model : NULL);
    rlxvk_graph_destroy(graph);
}

static void step_clone(live *l)
{
    live *copy = free_live();
    if (!copy)
        return;
    tell("e%u is a clone of e%u", number_of(copy), number_of(l));
    (void)expect(rlxvk_clone(l->real, &copy->real), ACCEPTED);
    copy->model = model_clone(l->model);
    l->rows_pending = false;
}

/* ---- The sequence ---- */

static bool has_params(const model_executable *m)
{
    for (uint8_t id = 0; id < m->graph->node_count; id++)
        if (m->graph->nodes[id].op == MODEL_PARAM)
            return true;
    return false;
}

/* Makes one call. Calls with more numbers are likelier. */
static void step(live *l)
{
    typedef void (*step_function)(live *);
    static const step_function steps[] = {
        step_run,        step_run,        step_run,       step_run,           step_submit,
        step_submit,     step_submit,     step_wait,      step_bind,          step_unbind,
        step_bind,       step_rng,        step_feed_rows, step_read_handle,   step_clear_feed,
        step_read_row,   step_extent,     step_set_param, step_set_param,     step_read_fed_output,
        step_set_params, step_read_param, step_clone,     step_first_bad_node};
    enum { PLAIN = sizeof steps / sizeof *steps };
    uint32_t which = choose(PLAIN + 8);
    if (which < PLAIN && !has_params(l->model) &&
        (steps[which] == step_set_param || steps[which] == step_set_params ||
         steps[which] == step_read_param))
        which = 0;
    (void)settle_sharers(l);
    if (which < PLAIN)
        steps[which](l);
    else if (which < PLAIN + 3)
        step_set_feed(l, false);
    else if (which < PLAIN + 5)
        step_set_feed(l, true);
    else if (which < PLAIN + 6)
        destroy(l);
    else
        step_compile();
    if (l->model)
        check_has_handles(l);
}

/* Reads everything at the end. */
static void finish(live *l)
{
    (void)settle_sharers(l);
    wait_for_all(l);
    for (uint8_t id = 0; id < l->model->graph->node_count; id++) {
        const model_node *n = &l->model->graph->nodes[id];
        if (n->op == MODEL_PARAM)
            read_param(l, n->name, 0);
        else if (n->op == MODEL_INPUT)
            read_handle(l, n->name, model_numel(&n->shape), n->dtype);
    }
    step_run(l);
}

/* Ways to reach the device's memory. If allocations are limited, little is staged, and the rest
 * takes the blocking path. */
static const struct {
    const char *name;
    rlxvk_context_options options;
} memories[CONTEXTS] = {
    {"mapped where it can be", {.cache_directory = ""}},
    {"staged", {.cache_directory = "", .direct_upload = RLXVK_OFF}},
    {"staged, 2 KiB at a time",
     {.cache_directory = "", .direct_upload = RLXVK_OFF, .limit_allocation_bytes = 2048}},
};

static rlxvk_executable *make_ballast(rlxvk_context *context)
{
    enum { SIDE = 160 };
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    FUZZ_CHECK(rlxvk_graph_create(&g) == RLXVK_OK, "%s", rlxvk_last_error());
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE)), y = x;
    for (int i = 0; i < 4; i++)
        y = rlxvk_matmul(g, y, x);
    rlxvk_graph_output(g, y);
    FUZZ_CHECK(rlxvk_compile(context, g, &(rlxvk_compile_options){.allow_unset = RLXVK_ON}, &e) ==
                   RLXVK_OK,
               "%s", rlxvk_last_error());
    rlxvk_graph_destroy(g);
    return e;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < CONTEXTS; i++) {
        FUZZ_CHECK(rlxvk_context_create(&memories[i].options, &world.contexts[i]) == RLXVK_OK, "%s",
                   rlxvk_last_error());
        world.ballasts[i] =
            memories[i].options.limit_allocation_bytes ? NULL : make_ballast(world.contexts[i]);
    }
    FUZZ_CHECK(rlxvk_custom_register(&model_custom) == RLXVK_OK, "%s", rlxvk_last_error());
    return 0;
}

void fuzz_report(void)
{
    story_report();
    for (int i = 0; i < CONTEXTS; i++) {
        rlxvk_executable_destroy(world.ballasts[i]);
        rlxvk_context_destroy(world.contexts[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices.in = (fuzz_input){data, size};
    story_begin();
    uint32_t memory = choose(CONTEXTS);
    world.context = world.contexts[memory];
    world.ballast = world.ballasts[memory];
    tell("memory %s\n", memories[memory].name);
    step_compile();
    for (int i = 0; i < MOST_CALLS && choices.in.left; i++) {
        live *l = choose_live();
        if (l)
            step(l);
        else
            step_compile();
    }
    choices.in.left = 0;
    for (int i = 0; i < MOST_EXECUTABLES; i++)
        if (world.lives[i].model)
            finish(&world.lives[i]);
    for (int i = 0; i < MOST_EXECUTABLES; i++)
        if (world.lives[i].model)
            destroy(&world.lives[i]);
    wait_for_ballast();
    if (world.context->device->validation_messages) {
        tell("DIFFERS: the validation layer objects");
        differ();
    }
    return 0;
}
