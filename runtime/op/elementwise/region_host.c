/*
 * The reference of regions. The host functions of the steps' own ops run on a chunk of elements at
 * a time. A kernel's value of a step may be off by the bound of the step, plus the effect of errors
 * in its operands. To find that effect, the step is run again with operands moved to the ends of
 * their intervals.
 */
#include "args/elementwise.h"
#include "op/elementwise/region.h"
#include "op/movement/layout.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 256, VALUES = REGION_VALUES_OF_STEPS + REGION_STEPS };

/* All values of CHUNK elements: as f32, and how far those of a kernel may be off. */
typedef struct machine {
    const host_call *call;
    const region_attributes *attributes;
    uint32_t count;
    float values[VALUES][CHUNK], moved[3][CHUNK];
    double errors[VALUES][CHUNK];
    double exact[CHUNK], bound[CHUNK], corner[CHUNK], unused[CHUNK];
} machine;

static uint64_t source_index(const host_call *call, uint32_t input, uint64_t element)
{
    const region_attributes *a = call->node->attributes;
    int64_t c[RLXVK_MAX_RANK];
    if (region_is_prologue(a, input)) {
        layout_host_coordinates(&call->node->shape, element, c);
        c[2] /= 2;
        c[3] /= 2;
        return layout_host_index(&call->inputs[input].node->shape, c);
    }
    if (a->scalar_mask >> input & 1)
        return 0;
    return a->modulus[input] ? element % a->modulus[input] : element;
}

/* Runs a step by the host function of its op. If that leaves the bound to the op's tolerance, the
 * bound is filled in. */
static rlxvk_status run_step(const machine *m, const region_step *s, const float *const operands[3],
                             double *out, double *bound)
{
    node word = {.op = OP_input, .dtype = RLXVK_F32, .shape = {.rank = 1, .dims = {m->count}}};
    node n = {.op = (uint16_t)region_step_row(s),
              .dtype = (uint8_t)(s->kind == REGION_CAST ? s->op : RLXVK_F32),
              .input_count = region_arity(s->kind),
              .shape = word.shape};
    host_tensor inputs[3];
    host_call call = {&n, inputs, out, bound};
    const op_row *row = node_row(&n);
    for (uint32_t i = 0; i < n.input_count; i++)
        inputs[i] = (host_tensor){&word, STORAGE_WORD, operands[i], NULL};
    for (uint32_t i = 0; i < m->count && bound; i++)
        bound[i] = -1;
    rlxvk_status status = row->family->execution.host(&call);
    for (uint32_t i = 0; i < m->count && bound; i++)
        if (bound[i] < 0)
            bound[i] = row->atol + (isfinite(out[i]) ? row->rtol * fabs(out[i]) : 0);
    return status;
}

/* The distance of two results. It is infinite if only one of them is NaN. */
static double distance(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    return isnan(a) || isnan(b) ? INFINITY : fabs(a - b);
}

/* Moves operand k to one end of its interval. If it is a condition that may be 0, the lower end is
 * 0. */
static void move_operand(machine *m, const region_step *s, uint32_t k, bool up)
{
    const float *values = m->values[s->operand[k]];
    const double *errors = m->errors[s->operand[k]];
    bool tested =
        (s->kind == REGION_WHERE && k == 0) || (s->kind == REGION_CAST && s->op == RLXVK_BOOL);
    for (uint32_t i = 0; i < m->count; i++) {
        double v = values[i], e = errors[i];
        bool zero = tested && !up && e > 0 && fabs(v) <= e;
        m->moved[k][i] = zero ? 0 : e > 0 ? (float)(up ? v + e : v - e) : values[i];
    }
}

static bool may_tie(const machine *m, const region_step *s, uint32_t i)
{
    uint32_t a = s->operand[0], b = s->operand[1];
    double room = m->errors[a][i] + m->errors[b][i];
    return s->kind == REGION_COMPARE && room > 0 &&
           fabs((double)m->values[a][i] - (double)m->values[b][i]) <= room;
}

/* Adds to m->bound the effect of errors in the operands. */
static rlxvk_status spread_errors(machine *m, const region_step *s)
{
    uint32_t arity = region_arity(s->kind);
    const float *operands[3] = {m->moved[0], m->moved[1], m->moved[2]};
    double spread[CHUNK] = {0};
    rlxvk_status status = RLXVK_OK;
    for (uint32_t ends = 0; ends < 1u << arity; ends++) {
        for (uint32_t k = 0; k < arity; k++)
            move_operand(m, s, k, ends >> k & 1);
        TRY(run_step(m, s, operands, m->corner, NULL));
        for (uint32_t i = 0; i < m->count; i++)
            spread[i] = fmax(spread[i], distance(m->corner[i], m->exact[i]));
    }
    for (uint32_t i = 0; i < m->count; i++)
        m->bound[i] += may_tie(m, s, i) ? 1 : spread[i];
error:
    return status;
}

/* Stores the result of a step as f32, and how far a kernel's f32 may be off. If no other f32 is
 * within the bound, that is 0. */
static void keep_value(machine *m, uint32_t value)
{
    for (uint32_t i = 0; i < m->count; i++) {
        float rounded = (float)m->exact[i];
        double off = distance(rounded, m->exact[i]);
        m->values[value][i] = rounded;
        m->errors[value][i] = m->bound[i] <= off ? 0 : m->bound[i] + off;
    }
}

static rlxvk_status run_chunk(machine *m, uint64_t first)
{
    const host_call *call = m->call;
    const region_attributes *a = m->attributes;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t k = 0; k < call->node->input_count; k++)
        for (uint32_t i = 0; i < m->count; i++)
            m->values[k][i] = call->inputs[k].words[source_index(call, k, first + i)];
    for (uint32_t k = 0; k < a->step_count; k++) {
        const region_step *s = &a->steps[k];
        const float *operands[3];
        for (uint32_t i = 0; i < region_arity(s->kind); i++)
            operands[i] = m->values[s->operand[i]];
        TRY(run_step(m, s, operands, m->exact, m->bound));
        if (call->bound)
            TRY(spread_errors(m, s));
        keep_value(m, REGION_VALUES_OF_STEPS + k);
    }
    memcpy(call->out + first, m->exact, m->count * sizeof *m->exact);
    if (call->bound)
        memcpy(call->bound + first, m->bound, m->count * sizeof *m->bound);
error:
    return status;
}

rlxvk_status region_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    machine *m = memory_zeroed(1, sizeof *m);
    rlxvk_status status = m ? RLXVK_OK : status_fail_memory("elementwise region");
    for (uint64_t first = 0; first < numel && status == RLXVK_OK; first += CHUNK) {
        m->call = call;
        m->attributes = call->node->attributes;
        m->count = (uint32_t)MIN(numel - first, CHUNK);
        status = run_chunk(m, first);
    }
    memory_free(m);
    return status;
}
