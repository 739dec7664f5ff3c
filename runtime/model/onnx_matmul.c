/* Lowerings of matrix products and determinants. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <rlxvk_ops_domain.h>
#include <string.h>

/* Integers are summed as f32 words, which are exact up to 2^24. */
void onnx_mat_mul(call *c)
{
    call_give(c, 0, rlxvk_matmul(c->graph, call_tensor(c, 0), call_tensor(c, 1)));
}

static rlxvk_tensor scaled(call *c, rlxvk_tensor x, float by)
{
    return by == 1 ? x : rlxvk_mul(c->graph, x, call_scalar(c, by));
}

void onnx_gemm(call *c)
{
    float alpha = call_real(c, "alpha", 1), beta = call_real(c, "beta", 1);
    rlxvk_matmul_options options = {.transpose_a = call_flag(c, "transA", false),
                                    .transpose_b = call_flag(c, "transB", false)};
    rlxvk_tensor y;
    if (c->opset < 7)
        call_ignore(c, "broadcast");
    y = rlxvk_matmul_with(c->graph, call_tensor(c, 0), call_tensor(c, 1), &options);
    y = scaled(c, y, alpha);
    if (call_has(c, 2))
        y = rlxvk_add(c->graph, y, scaled(c, call_tensor(c, 2), beta));
    call_give(c, 0, y);
}

void onnx_einsum(call *c)
{
    const char *given = call_string(c, "equation", "");
    char *equation = arena_allocate(c->a, strlen(given) + 1);
    rlxvk_tensor *operands = arena_allocate(c->a, MAX(c->input_count, 1) * sizeof *operands);
    size_t length = 0;
    if (!equation || !operands) {
        import_end(c->import, status_fail_memory("einsum"));
        return;
    }
    for (const char *at = given; *at; at++)
        if (*at != ' ')
            equation[length++] = *at;
    for (size_t i = 0; i < c->input_count; i++)
        operands[i] = call_tensor(c, i);
    call_give(c, 0, rlxvk_einsum(c->graph, equation, operands, c->input_count));
}

void onnx_det(call *c)
{
    call_give(c, 0, rlxvk_det(c->graph, call_tensor(c, 0)));
}

void onnx_inverse(call *c)
{
    call_give(c, 0, rlxvk_inverse(c->graph, call_tensor(c, 0)));
}
