/* The operands of a recurrent layer. */
#include "op/sequence/recurrent_job.h"
#include "op/movement/layout.h"

recurrent_job recurrent_job_make(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const recurrent_attributes *a = n->attributes;
    return (recurrent_job){.l = l,
                           .id = id,
                           .cell = a->options.relu ? RECURRENT_RELU : node_code(n),
                           .r = recurrent_geometry_of(input_shape(l->graph, n, 0), n, a),
                           .carry = a->carry,
                           .in_place = a->options.in_place};
}

operand recurrent_layer_part(const recurrent_job *j, uint32_t i, uint64_t first, uint64_t count)
{
    operand o = lower_input(j->l, j->id, i);
    lower_narrow(j->l, &o, first, count);
    return o;
}

operand recurrent_initial_state(const recurrent_job *j, uint32_t state)
{
    uint64_t count = recurrent_layer_state(&j->r);
    uint32_t i = recurrent_state_operand(graph_node(j->l->graph, j->id)) + state;
    return j->carry && state < j->r.states ? recurrent_layer_part(j, i, j->layer * count, count)
                                           : reading(j->p);
}

operand recurrent_final_state(const recurrent_job *j, uint32_t state)
{
    const node *n = graph_node(j->l->graph, j->id);
    uint64_t count = recurrent_layer_state(&j->r), first = j->layer * count;
    operand o = j->in_place ? lower_update(j->l, n->inputs[recurrent_state_operand(n) + state])
                            : lower_write(j->l, j->id);
    if (!j->in_place)
        first += recurrent_result(&j->r) + state * j->r.layers * count;
    lower_narrow(j->l, &o, first, count);
    return o;
}

operand recurrent_hidden_weights(const recurrent_job *j)
{
    uint64_t count = j->r.directions * j->r.rows * j->r.hidden;
    return recurrent_layer_part(j, 2, j->layer * count, count);
}

operand recurrent_hidden_bias(const recurrent_job *j)
{
    uint64_t rows = j->r.directions * j->r.rows;
    return j->cell == RECURRENT_GRU ? recurrent_layer_part(j, 4, j->layer * rows, rows)
                                    : reading(j->p);
}

rlxvk_status recurrent_cell_state(const recurrent_job *j, operand *out)
{
    *out = j->y;
    if (j->r.states == 2 && j->carry)
        *out = recurrent_final_state(j, 1);
    else if (j->r.states == 2)
        return lower_temporary(j->l, recurrent_layer_state(&j->r) * sizeof(float), out);
    return RLXVK_OK;
}

void recurrent_step_places(const recurrent_job *j, uint64_t step, uint32_t p_first[2],
                           uint32_t y_first[2])
{
    const recurrent_geometry *r = &j->r;
    uint64_t gates = r->directions * r->rows, units = r->directions * r->hidden;
    for (uint64_t d = 0; d < r->directions; d++) {
        uint64_t t = d ? r->steps - 1 - step : step;
        p_first[d] = (uint32_t)(j->p.offset + t * gates + d * r->rows);
        y_first[d] = (uint32_t)(j->y.offset + t * units + d * r->hidden);
    }
}

rlxvk_status recurrent_copy_last(const recurrent_job *j)
{
    const recurrent_geometry *r = &j->r;
    uint64_t units = r->directions * r->hidden;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->hidden);
    rlxvk_status status = RLXVK_OK;
    for (uint64_t d = 0; d < r->directions; d++) {
        strided_copy copy = layout_dense_copy(&shape);
        copy.source_first = (int64_t)(d ? d * r->hidden : (r->steps - 1) * units);
        copy.source[0] = (int64_t)(r->steps * units);
        copy.source[1] = 1;
        copy.target_first = (int64_t)(d * r->batch * r->hidden);
        TRY(layout_emit_copy(j->l, &copy, reading(j->y), recurrent_final_state(j, 0)));
    }
error:
    return status;
}
