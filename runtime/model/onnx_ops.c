/* See onnx_ops.h. */
#include "model/onnx_ops.h"
#include "base/nearest.h"

#include <string.h>

static const onnx_op ops[] = {
#define OP(domain, name, first, last, operands, function)                                          \
    {domain, #name, first, last, operands, onnx_##function},
#include "model/onnx_ops.def"
#undef OP
};

const onnx_op *onnx_op_at(size_t i)
{
    return i < ARRAY_COUNT(ops) ? &ops[i] : NULL;
}

static bool is_named(const onnx_op *op, const char *domain, const char *name)
{
    return strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0;
}

const onnx_op *onnx_find_op(const char *domain, const char *name, int64_t opset)
{
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++)
        if (is_named(&ops[i], domain, name) && opset >= ops[i].first &&
            (ops[i].last == 0 || opset <= ops[i].last))
            return &ops[i];
    return NULL;
}

void onnx_explain_missing(const char *domain, const char *name, int64_t opset, text *out)
{
    nearest known = nearest_to(name);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        if (is_named(&ops[i], domain, name)) {
            text_append(out,
                        "its form of opset %lld is not supported, only that from %lld on; export "
                        "the model for another opset",
                        (long long)opset, (long long)ops[i].first);
            return;
        }
        if (strcmp(ops[i].domain, domain) == 0)
            nearest_consider(&known, ops[i].name);
    }
    text_append(out, "there is no such op in this version of rlxvk%s%s",
                known.word ? "; the nearest name is " : "", known.word ? known.word : "");
}
