/* Lowerings of products with weights of 4 or 8 bits in blocks (com.microsoft). */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

/* The weights [n, k] lie by column of the result: blocks of `block` codes, the first one lowest. */
typedef struct blocks {
    int64_t k, n, block, count; /* count: blocks of a row */
    uint32_t bits;
    const onnx_tensor *codes, *scales, *zeros; /* zeros may be NULL */
} blocks;

static uint32_t code_at(const uint8_t *bytes, uint64_t i, uint32_t bits)
{
    return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

/* ---- Params in rlxvk's order ---- */

/* Element p of column j is number p n + j. Codes of 8 bits are signed. */
static rlxvk_status write_codes(const import_files *files, const void *user, void *out)
{
    const blocks *b = user;
    uint64_t row = (uint64_t)(b->count * b->block);
    uint8_t *to = out;
    onnx_data data;
    rlxvk_status status;
    TRY(onnx_data_read(b->codes, files->folder, files->file, &data));
    for (uint64_t p = 0; p < (uint64_t)b->k; p++)
        for (uint64_t j = 0; j < (uint64_t)b->n; j++) {
            uint32_t code = code_at(data.bytes.bytes, j * row + p, b->bits);
            uint64_t at = p * (uint64_t)b->n + j;
            if (b->bits == 8)
                to[at] = (uint8_t)(code ^ 128);
            else
                to[at / 2] |= (uint8_t)(code << (at % 2 * 4));
        }
    onnx_data_free(&data);
error:
    return status;
}

/* By block, then by column. */
static rlxvk_status write_scales(const import_files *files, const void *user, void *out)
{
    const blocks *b = user;
    uint64_t count = (uint64_t)(b->count * b->n);
    float *to = out, *from = memory_allocate((size_t)count * sizeof *from);
    onnx_data data;
    rlxvk_status status;
    if (!from)
        return status_fail_memory("scales of a model");
    TRY(onnx_data_read(b->scales, files->folder, files->file, &data));
    onnx_widen(b->scales->type, data.bytes, count, from);
    for (uint64_t i = 0; i < count; i++)
        to[i] = from[i % (uint64_t)b->n * (uint64_t)b->count + i / (uint64_t)b->n];
    onnx_data_free(&data);
error:
    memory_free(from);
    return status;
}

static rlxvk_status write_zeros(const import_files *files, const void *user, void *out)
{
    const blocks *b = user;
    uint64_t row = b->bits == 8 ? (uint64_t)b->count : (uint64_t)(b->count + 1) / 2 * 2;
    float *to = out;
    onnx_data data;
    rlxvk_status status;
    TRY(onnx_data_read(b->zeros, files->folder, files->file, &data));
    for (uint64_t i = 0; i < (uint64_t)b->count; i++)
        for (uint64_t j = 0; j < (uint64_t)b->n; j++)
            to[i * (uint64_t)b->n + j] =
                (float)code_at(data.bytes.bytes, j * row + i, b->bits) - (b->bits == 8 ? 128 : 0);
    onnx_data_free(&data);
error:
    return status;
}

/* ---- The op ---- */

/* Operand i as a weight of the file with so many elements; NULL after a problem. */
static const onnx_tensor *weight(call *c, size_t i, uint64_t numel, bool real)
{
    const onnx_tensor *t = call_has(c, i) ? c->inputs[i]->initializer : NULL;
    if (t && t->numel == numel && (real ? onnx_is_real(t->type) : t->type == ONNX_UINT8))
        return t;
    call_refuse(c, NULL, "operand %zu must be a weight of the file, %llu values of %s", i,
                (unsigned long long)numel, real ? "floats" : "UINT8");
    return NULL;
}

static bool read_sizes(call *c, blocks *b)
{
    uint64_t elements;
    b->k = call_integer(c, "K", 0);
    b->n = call_integer(c, "N", 0);
    b->block = call_integer(c, "block_size", 0);
    b->bits = (uint32_t)call_integer(c, "bits", 4);
    call_ignore(c, "accuracy_level"); /* it is f32 */
    if (b->bits != 4 && b->bits != 8)
        call_refuse(c, "bits", "4 and 8 are supported");
    if (b->k < 1 || b->n < 1 || b->block < 2 || b->block % 2 || b->k > INT32_MAX ||
        b->n > INT32_MAX || b->block > INT32_MAX)
        call_refuse(c, "block_size", "sizes are out of range");
    if (call_has(c, 4))
        call_refuse(c, NULL, "an order of the rows (g_idx, operand 4) is not supported");
    if (c->import->loops)
        call_refuse(c, NULL, "packed weights inside a loop by data are not supported");
    if (c->failed)
        return false;
    b->count = (b->k + b->block - 1) / b->block;
    if (!size_multiply((uint64_t)(b->count * b->n), (uint64_t)b->block, &elements)) {
        call_refuse(c, NULL, "the weights are too large");
        return false;
    }
    b->codes = weight(c, 1, elements * b->bits / 8, false);
    b->scales = weight(c, 2, (uint64_t)(b->count * b->n), true);
    if (call_has(c, 3))
        b->zeros = weight(c, 3, (uint64_t)b->n * divide_up((uint64_t)b->count * b->bits, 8), false);
    return !c->failed;
}

/* Weights without zero points have the middle code as theirs. */
static rlxvk_status add_zeros(call *c, const blocks *b, rlxvk_shape shape, rlxvk_tensor *out)
{
    float middle = b->bits == 8 ? 0 : 8, *numbers;
    size_t count = (size_t)(b->count * b->n);
    if (b->zeros)
        return import_made_param(c->import, b->zeros, RLXVK_F32, shape, write_zeros, b, out);
    numbers = memory_allocate(count * sizeof *numbers);
    if (!numbers)
        return status_fail_memory("zero points");
    for (size_t i = 0; i < count; i++)
        numbers[i] = middle;
    *out = rlxvk_constant(c->graph, RLXVK_F32, shape, numbers, count * sizeof *numbers);
    memory_free(numbers);
    return RLXVK_OK;
}

void onnx_mat_mul_n_bits(call *c)
{
    rlxvk_graph *g = c->graph;
    blocks *b = arena_allocate(c->a, sizeof *b);
    rlxvk_quant_scheme scheme = {.kind = RLXVK_QUANT_INT4_ASYM};
    rlxvk_tensor w, scale, zero, y;
    rlxvk_shape shape;
    uint64_t bytes;
    rlxvk_status status;
    if (!b) {
        import_end(c->import, status_fail_memory("packed weights"));
        return;
    }
    if (!read_sizes(c, b))
        return;
    scheme.block = b->block;
    scheme.n = b->n;
    if (b->bits == 8)
        scheme.kind = RLXVK_QUANT_INT8_ASYM;
    shape = RLXVK_SHAPE(b->count, b->n);
    bytes = divide_up((uint64_t)(b->k * b->n), b->bits == 8 ? 1 : 2);
    TRY(import_made_param(c->import, b->codes, RLXVK_U8, RLXVK_SHAPE((int64_t)bytes), write_codes,
                          b, &w));
    TRY(import_made_param(c->import, b->scales, RLXVK_F32, shape, write_scales, b, &scale));
    TRY(add_zeros(c, b, shape, &zero));
    y = call_cast(c, call_tensor(c, 0), ONNX_FLOAT);
    y = rlxvk_dequant_matmul_scaled(g, y, w, scale, zero, &scheme);
    call_give(c, 0, call_has(c, 5) ? rlxvk_add(g, y, call_tensor(c, 5)) : y);
error:
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
}
