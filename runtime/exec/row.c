/* Rows of nodes, read once everything pending has landed. */
#include "exec/row.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

rlxvk_status row_check(const rlxvk_executable *e, const char *call, uint32_t id, uint64_t row,
                       uint64_t row_elements)
{
    uint64_t numel = shape_numel(&graph_node(e->program->graph, id)->shape), end;
    char label[NODE_LABEL];
    bool fits = size_add(row, 1, &end) && size_multiply(end, row_elements, &end) && end <= numel;
    if (fits)
        return RLXVK_OK;
    return status_fail(RLXVK_E_RANGE, "%s: row %llu of %llu elements is outside the %llu of %s",
                       call, (unsigned long long)row, (unsigned long long)row_elements,
                       (unsigned long long)numel, op_node_label(e->program->graph, id, label));
}

/* Reads f32 words after everything pending has landed. `elements` are counted from `first`. */
rlxvk_status row_read(rlxvk_executable *e, location from, uint64_t first, uint64_t elements,
                      float *values)
{
    rlxvk_status status;
    TRY(ticket_flush(e));
    from.offset += first * 4;
    TRY(transfer_read(e, &from, values, elements * 4));
error:
    return status;
}

rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index, size_t row,
                                   size_t row_elements, float *values)
{
    rlxvk_status status;
    TRY(state_require(executable, "read_output_row"));
    TRY(status_require_items(values, row_elements, "read_output_row", "values"));
    if (index >= executable->program->result_count)
        return status_fail(RLXVK_E_INDEX, "read_output_row: output %zu of %zu; the first is 0",
                           index, executable->program->result_count);
    const output_state *out = &executable->outputs[index];
    if (program_held(executable->program, out->result->node) != STORAGE_WORD)
        return status_fail(RLXVK_E_DTYPE,
                           "read_output_row: output %zu is not held as f32 words; read it whole",
                           index);
    TRY(row_check(executable, "read_output_row", out->result->node, row, row_elements));
    TRY(row_read(executable, state_output_location(executable, out), (uint64_t)row * row_elements,
                 row_elements, values));
error:
    return status;
}
