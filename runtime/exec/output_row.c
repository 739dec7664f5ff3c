/* Rows of nodes, read after all pending work is done. */
#include "exec/output_row.h"
#include "exec/ticket.h"
#include "exec/transfer.h"

rlxvk_status output_row_check(const rlxvk_executable *e, const char *call, uint32_t id,
                              uint64_t row, uint64_t row_elements)
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

rlxvk_status output_row_read(rlxvk_executable *e, uint32_t id, location from, uint64_t first,
                             uint64_t elements, slot_type type, void *data)
{
    const node *n = graph_node(e->program->graph, id);
    const storage held = program_held(e->program, id);
    const uint64_t unit = dtype_storage_element_bytes(held);
    void *bytes = NULL;
    rlxvk_status status;
    TRY(ticket_flush(e));
    from.offset += first * unit;
    if (n->dtype == RLXVK_F32)
        return transfer_read(e, &from, data, elements * unit);
    if (!(bytes = memory_allocate(MAX(elements * unit, 1))))
        return status_fail_memory("values to read");
    TRY(transfer_read(e, &from, bytes, elements * unit));
    slot_decode(n, held, type, bytes, elements, data);
error:
    memory_free(bytes);
    return status;
}

rlxvk_status rlxvk_read_output_row_as(rlxvk_executable *executable, size_t index, size_t row,
                                      size_t row_elements, void *data, rlxvk_dtype dtype)
{
    const slot_type type = {dtype, false};
    uint64_t all;
    rlxvk_status status;
    TRY(executable_require(executable, "read_output_row"));
    TRY(status_require_items(data, row_elements, "read_output_row", "values"));
    if (index >= executable->program->result_count)
        return status_fail(RLXVK_E_INDEX, "read_output_row: output %zu of %zu; the first is 0",
                           index, executable->program->result_count);
    const output_state *out = &executable->outputs[index];
    uint32_t id = out->result->node;
    const node *n = graph_node(executable->program->graph, id);
    TRY(slot_length(n, program_held(executable->program, id), type, &all));
    TRY(output_row_check(executable, "read_output_row", id, row, row_elements));
    TRY(output_row_read(executable, id, executable_output_location(executable, out),
                        (uint64_t)row * row_elements, row_elements, type, data));
error:
    return status;
}

rlxvk_status rlxvk_read_output_row(rlxvk_executable *executable, size_t index, size_t row,
                                   size_t row_elements, float *values)
{
    return rlxvk_read_output_row_as(executable, index, row, row_elements, values, RLXVK_F32);
}
