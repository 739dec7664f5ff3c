/*
 * What lowerings of ops see of a node: its operands, its attributes, and the calls that give its
 * results or refuse it. A problem of a node does not end the import: all problems are collected.
 * After one, calls give neutral values and nothing further of the node counts.
 */
#ifndef RLXVK_CALL_H
#define RLXVK_CALL_H

#include "model/import.h"

#include <rlxvk_ops.h>

#define CALL_ATTRIBUTES 64

typedef struct call {
    onnx_import *import;
    rlxvk_graph *graph;
    arena *a; /* of the import */
    const onnx_node *node;
    const char *text;    /* the node's name for problems */
    int64_t opset;       /* of the node's domain */
    onnx_value **inputs; /* NULL: left out */
    onnx_value **outputs;
    size_t input_count, output_count;
    uint64_t used; /* the attributes that were asked for, one bit each */
    bool failed;
} call;

/* ---- Problems ---- */

/* `attribute` may be NULL. The text says why, and the nearest remedy. */
void call_refuse(call *c, const char *attribute, const char *format, ...) FORMATS(3, 4);
/* Refuses the node because of the last error. Out of memory ends the import. */
void call_fail(call *c, const char *attribute, rlxvk_status status);
#define CALL_UNSUPPORTED "not supported"

/* ---- Operands ---- */

bool call_has(const call *c, size_t i);
int32_t call_type(const call *c, size_t i); /* ONNX_UNDEFINED if it is left out */
/* The operand as a tensor; RLXVK_NONE if it is left out, or after a problem. */
rlxvk_tensor call_tensor(call *c, size_t i);
/* Any value as a tensor. */
rlxvk_tensor call_tensor_of(call *c, onnx_value *v);
/* Its shape; rank 0 if it is left out. Dims may be codes. */
rlxvk_shape call_shape(call *c, size_t i);
/* Whether all dims are numbers. If not, refuses the node and says which dims need a size. */
bool call_is_fixed(call *c, rlxvk_shape shape);
/* Whether the operand is known while the graph is built. */
bool call_is_known(const call *c, size_t i);
/* Whether all operands are known and short: then the node is computed on the host. */
bool call_is_host(const call *c);
/* Refuses the node, because a value that is not known decides something. If it is computed from
 * inputs that are numbers or rows, asks for their values. */
void call_need(call *c, const onnx_value *v, const char *what);
/* The same, but refuses the node only if there are such inputs. Returns whether there are. */
bool call_need_inputs(call *c, const onnx_value *v, const char *what);
/* The operand as an array if it lies on the host, or is a short initializer of integers; else NULL.
 * It never refuses the node for that. */
const host_array *call_known(call *c, size_t i);
/* The operand as an array on the host. If it is not known, refuses the node: `what` is what the
 * operand decides, for example "the shape". NULL if it is left out, too. */
const host_array *call_host(call *c, size_t i, const char *what);
/* The same; refuses the node, too, if the elements are no integers or BOOLs. */
const host_array *call_host_integers(call *c, size_t i, const char *what);
/* The same, for a single number, or `otherwise` if the operand is left out. */
int64_t call_host_integer(call *c, size_t i, const char *what, int64_t otherwise);
double call_host_real(call *c, size_t i, const char *what, double otherwise);

/* ---- Attributes ---- */

const onnx_attribute *call_attribute(call *c, const char *name, int32_t type);
int64_t call_integer(call *c, const char *name, int64_t otherwise);
bool call_flag(call *c, const char *name, bool otherwise);
float call_real(call *c, const char *name, float otherwise);
const char *call_string(call *c, const char *name, const char *otherwise);
/* NULL and count 0 if it is not given. */
const int64_t *call_integers(call *c, const char *name, size_t *out_count);
const float *call_reals(call *c, const char *name, size_t *out_count);
/* The attribute as the index of one of the words, which end with NULL. */
int call_word(call *c, const char *name, const char *const *words, int otherwise);
/* Takes an axis to 0 .. rank - 1. */
int32_t call_axis(call *c, const char *name, int64_t axis, uint32_t rank);
/* Axes of attribute `axes`, or from opset `since` on of operand `i`. Without any, the count is 0.
 * They are from 0 to rank - 1. */
typedef struct call_axes {
    int32_t items[RLXVK_MAX_RANK];
    uint32_t count;
    bool given;
} call_axes;
call_axes call_read_axes(call *c, int64_t since, size_t i, uint32_t rank);
/* An attribute that decides nothing here. */
void call_ignore(call *c, const char *name);

/* ---- Results ---- */

bool call_wants(const call *c, size_t i);
/* The result has the type of operand 0, or the given type. A tensor of another dtype is cast. */
void call_give(call *c, size_t i, rlxvk_tensor tensor);
void call_give_as(call *c, size_t i, rlxvk_tensor tensor, int32_t type);
void call_give_host(call *c, size_t i, const host_array *h);
void call_give_value(call *c, size_t i, const onnx_value *value);
/* A new array; NULL after a problem. */
host_array *call_make_host(call *c, int32_t type, rlxvk_shape shape);

/* The result of another op's lowering, in a given opset of its domain, on tensors of one type. The
 * attributes are those of the node. RLXVK_NONE after a problem. */
rlxvk_tensor call_apply(call *c, void lowering(call *), int64_t opset, const rlxvk_tensor *operands,
                        size_t count, int32_t type);

/* ---- Short forms ---- */

rlxvk_tensor call_scalar(call *c, double value); /* an F32 constant */
rlxvk_shape call_tensor_shape(call *c, rlxvk_tensor t);
/* Casts to the dtype of an ONNX type. */
rlxvk_tensor call_cast(call *c, rlxvk_tensor t, int32_t type);
/* Takes whole numbers that are exact in F32 to integers of up to 16 bits, which wrap around. Other
 * types stay. */
rlxvk_tensor call_wrap(call *c, rlxvk_tensor t, int32_t type);
/* Whole numbers of F32 divided by a whole number: gives the quotients, and the remainders. Exact.
 */
rlxvk_tensor call_divide_whole(call *c, rlxvk_tensor t, int64_t by, rlxvk_tensor *out_rest);
/* The product of dims [from, to): a number or a code. */
int64_t call_product(call *c, rlxvk_shape shape, uint32_t from, uint32_t to);

#endif
