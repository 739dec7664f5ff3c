/* Lowerings of products with weights of 4 or 8 bits in blocks (com.microsoft). */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <string.h>

/* The weights [n, k] lie by column of the result: blocks of `block` codes, the first one lowest. */
typedef struct blocks {
    int64_t k, n, block, count; /* count: blocks of a row */
    uint32_t bits;
    const uint8_t *codes, *zeros; /* zeros may be NULL */
    const host_array *scales;
} blocks;

static uint32_t code_at(const uint8_t *bytes, uint64_t i, uint32_t bits)
{
    return bits == 8 ? bytes[i] : bytes[i / 2] >> (i % 2 * 4) & 15;
}

/* Codes of rlxvk's order: element p of column j is number p n + j. Those of 8 bits are signed. */
static void repack(const blocks *b, uint8_t *out)
{
    uint64_t row = (uint64_t)(b->count * b->block);
    for (uint64_t p = 0; p < (uint64_t)b->k; p++)
        for (uint64_t j = 0; j < (uint64_t)b->n; j++) {
            uint32_t code = code_at(b->codes, j * row + p, b->bits);
            uint64_t at = p * (uint64_t)b->n + j;
            if (b->bits == 8)
                out[at] = (uint8_t)(code ^ 128);
            else
                out[at / 2] |= (uint8_t)(code << (at % 2 * 4));
        }
}

/* Scales and zero points by block, then by column. */
static void repack_scales(const blocks *b, float *scales, float *zeros)
{
    uint64_t row = b->bits == 8 ? (uint64_t)b->count : (uint64_t)(b->count + 1) / 2 * 2;
    for (uint64_t j = 0; j < (uint64_t)b->n; j++)
        for (uint64_t i = 0; i < (uint64_t)b->count; i++) {
            uint64_t at = i * (uint64_t)b->n + j;
            uint32_t zero =
                b->zeros ? code_at(b->zeros, j * row + i, b->bits) : 1u << (b->bits - 1);
            scales[at] = (float)b->scales->reals[j * (uint64_t)b->count + i];
            zeros[at] = (float)zero - (b->bits == 8 ? 128 : 0);
        }
}

/* The bytes of operand i, a weight of the file with so many of them. */
static bool take_bytes(call *c, size_t i, uint64_t size, onnx_data *out)
{
    const onnx_tensor *t = c->inputs[i]->initializer;
    rlxvk_status status;
    if (!t || t->type != ONNX_UINT8 || t->numel != size) {
        call_refuse(c, NULL, "operand %zu must be a weight of the file, %llu values of UINT8", i,
                    (unsigned long long)size);
        return false;
    }
    status = onnx_data_read(t, c->import->folder, c->import->model->file, out);
    if (status != RLXVK_OK)
        call_fail(c, NULL, status);
    return status == RLXVK_OK;
}

static bool read_sizes(call *c, blocks *b)
{
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
    b->count = c->failed ? 0 : (b->k + b->block - 1) / b->block;
    return !c->failed;
}

/* Adds the weights as constants and the product. */
static void give_product(call *c, const blocks *b)
{
    rlxvk_graph *g = c->graph;
    rlxvk_quant_scheme scheme = {.block = b->block, .n = b->n};
    size_t codes = (size_t)divide_up((uint64_t)(b->k * b->n), b->bits == 8 ? 1 : 2);
    size_t scales = (size_t)(b->count * b->n);
    uint8_t *bytes = memory_zeroed(codes, 1);
    float *numbers = memory_zeroed(scales, 2 * sizeof *numbers);
    rlxvk_shape shape = RLXVK_SHAPE(b->count, b->n);
    rlxvk_tensor w, scale, zero, y;
    scheme.kind = b->bits == 8 ? RLXVK_QUANT_INT8_ASYM : RLXVK_QUANT_INT4_ASYM;
    if (!bytes || !numbers) {
        import_end(c->import, status_fail_memory("packed weights"));
    } else {
        repack(b, bytes);
        repack_scales(b, numbers, numbers + scales);
        w = rlxvk_constant(g, RLXVK_U8, RLXVK_SHAPE((int64_t)codes), bytes, codes);
        scale = rlxvk_constant(g, RLXVK_F32, shape, numbers, scales * sizeof *numbers);
        zero = rlxvk_constant(g, RLXVK_F32, shape, numbers + scales, scales * sizeof *numbers);
        y = call_cast(c, call_tensor(c, 0), ONNX_FLOAT);
        y = rlxvk_dequant_matmul_scaled(g, y, w, scale, zero, &scheme);
        call_give(c, 0, call_has(c, 5) ? rlxvk_add(g, y, call_tensor(c, 5)) : y);
    }
    memory_free(bytes);
    memory_free(numbers);
}

void onnx_mat_mul_n_bits(call *c)
{
    blocks b = {0};
    onnx_data codes = {0}, zeros = {0};
    uint64_t elements;
    if (!read_sizes(c, &b))
        return;
    b.scales = call_host(c, 2, "the scales");
    if (!size_multiply((uint64_t)(b.count * b.n), (uint64_t)b.block, &elements) || !b.scales ||
        !b.scales->reals || b.scales->numel != (uint64_t)(b.count * b.n)) {
        call_refuse(c, NULL, "the scales are not those of the sizes");
        return;
    }
    if (take_bytes(c, 1, elements * b.bits / 8, &codes) &&
        (!call_has(c, 3) ||
         take_bytes(c, 3, (uint64_t)b.n * divide_up((uint64_t)b.count * b.bits, 8), &zeros))) {
        b.codes = codes.bytes.bytes;
        b.zeros = zeros.bytes.bytes;
        give_product(c, &b);
    }
    onnx_data_free(&codes);
    onnx_data_free(&zeros);
}
