/* See host.h. */
#include "model/host.h"

#include <math.h>
#include <string.h>

void host_copy(host_array *to, uint64_t i, const host_array *x, uint64_t j)
{
    if (to->reals)
        to->reals[i] = x->reals[j];
    else
        to->integers[i] = x->integers[j];
}

void host_strides(rlxvk_shape shape, int64_t *out)
{
    int64_t stride = 1;
    for (uint32_t i = shape.rank; i-- > 0;) {
        out[i] = stride;
        stride *= MAX(shape.dims[i], 1);
    }
}

/* ---- Views ---- */

/* Steps through a shape's elements in order, with the offset of each in another array. */
typedef struct walk {
    rlxvk_shape shape;
    int64_t at[RLXVK_MAX_RANK];
    const int64_t *strides;
    int64_t offset;
} walk;

static void walk_on(walk *w)
{
    for (uint32_t i = w->shape.rank; i-- > 0;) {
        w->offset += w->strides[i];
        if (++w->at[i] < w->shape.dims[i])
            return;
        w->offset -= w->strides[i] * w->shape.dims[i];
        w->at[i] = 0;
    }
}

host_array *host_view(call *c, const host_array *x, rlxvk_shape shape, int64_t offset,
                      const int64_t *strides)
{
    walk w = {.shape = shape, .strides = strides, .offset = offset};
    host_array *h = x ? call_make_host(c, x->type, shape) : NULL;
    for (uint64_t i = 0; h && i < h->numel; i++, walk_on(&w))
        host_copy(h, i, x, (uint64_t)w.offset);
    if (h)
        h->symbolic = x->symbolic;
    return h;
}

rlxvk_shape host_broadcast(rlxvk_shape a, rlxvk_shape b)
{
    rlxvk_shape s = {.rank = MAX(a.rank, b.rank)};
    for (uint32_t i = 0; i < s.rank; i++) {
        int64_t m = i < a.rank ? a.dims[a.rank - 1 - i] : 1;
        int64_t n = i < b.rank ? b.dims[b.rank - 1 - i] : 1;
        if (m != n && m != 1 && n != 1)
            return (rlxvk_shape){.rank = RLXVK_MAX_RANK + 1};
        s.dims[s.rank - 1 - i] = m == 1 ? n : m;
    }
    return s;
}

/* Strides with which x is read in a larger shape. */
static void broadcast_strides(rlxvk_shape x, rlxvk_shape shape, int64_t *out)
{
    int64_t own[RLXVK_MAX_RANK];
    host_strides(x, own);
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t missing = shape.rank - x.rank;
        out[i] = i < missing || x.dims[i - missing] == 1 ? 0 : own[i - missing];
    }
}

host_array *host_expand(call *c, const host_array *x, rlxvk_shape shape)
{
    int64_t strides[RLXVK_MAX_RANK];
    if (!x)
        return NULL;
    shape = host_broadcast(x->shape, shape);
    if (shape.rank > RLXVK_MAX_RANK) {
        call_refuse(c, NULL, "the shapes of its operands do not agree");
        return NULL;
    }
    broadcast_strides(x->shape, shape, strides);
    return host_view(c, x, shape, 0, strides);
}

host_array *host_reshape(call *c, const host_array *x, rlxvk_shape shape)
{
    host_array *h = x ? call_make_host(c, x->type, shape) : NULL;
    if (h && h->numel != x->numel) {
        call_refuse(c, NULL, "%llu elements do not fit the shape", (unsigned long long)x->numel);
        return NULL;
    }
    for (uint64_t i = 0; h && i < h->numel; i++)
        host_copy(h, i, x, i);
    if (h)
        h->symbolic = x->symbolic;
    return h;
}

host_array *host_concat(call *c, const host_array *const *parts, size_t count, uint32_t axis)
{
    rlxvk_shape shape = parts[0]->shape;
    uint64_t before = 1, at = 0;
    host_array *h;
    for (size_t p = 1; p < count; p++) {
        shape.dims[axis] += parts[p]->shape.dims[axis];
        if (parts[p]->type != parts[0]->type) {
            call_refuse(c, NULL, "its operands are of different types");
            return NULL;
        }
    }
    for (uint32_t i = 0; i < axis; i++)
        before *= (uint64_t)shape.dims[i];
    h = call_make_host(c, parts[0]->type, shape);
    for (uint64_t row = 0; h && row < before; row++)
        for (size_t p = 0; p < count; p++) {
            uint64_t rows = parts[p]->numel / MAX(before, 1);
            for (uint64_t i = 0; i < rows && at < h->numel; i++)
                host_copy(h, at++, parts[p], row * rows + i);
        }
    for (size_t p = 0; h && p < count; p++)
        h->symbolic = h->symbolic || parts[p]->symbolic;
    return h;
}

host_array *host_gather(call *c, const host_array *x, const host_array *indices, uint32_t axis)
{
    rlxvk_shape shape = {.rank = x->shape.rank - 1 + indices->shape.rank};
    uint64_t inner = 1, outer = 1, at = 0;
    int64_t length = x->shape.dims[axis];
    host_array *h;
    if (shape.rank > RLXVK_MAX_RANK) {
        call_refuse(c, NULL, "the result has more than %d axes", RLXVK_MAX_RANK);
        return NULL;
    }
    for (uint32_t i = 0, k = 0; i < x->shape.rank; i++) {
        for (uint32_t j = 0; i == axis && j < indices->shape.rank; j++)
            shape.dims[k++] = indices->shape.dims[j];
        if (i != axis)
            shape.dims[k++] = x->shape.dims[i];
        outer *= i < axis ? (uint64_t)x->shape.dims[i] : 1;
        inner *= i > axis ? (uint64_t)x->shape.dims[i] : 1;
    }
    h = call_make_host(c, x->type, shape);
    for (uint64_t o = 0; h && o < outer; o++)
        for (uint64_t k = 0; k < indices->numel; k++) {
            int64_t index = indices->integers[k] + (indices->integers[k] < 0 ? length : 0);
            if (index < 0 || index >= length) {
                call_refuse(c, NULL, "index %lld is outside of %lld elements",
                            (long long)indices->integers[k], (long long)length);
                return NULL;
            }
            for (uint64_t i = 0; i < inner; i++)
                host_copy(h, at++, x, (o * (uint64_t)length + (uint64_t)index) * inner + i);
        }
    if (h)
        h->symbolic = x->symbolic;
    return h;
}

host_array *host_row(call *c, const int64_t *values, uint32_t count)
{
    host_array *h = call_make_host(c, ONNX_INT64, RLXVK_SHAPE((int64_t)count));
    for (uint32_t i = 0; h && i < count; i++) {
        h->integers[i] = values[i];
        h->symbolic = h->symbolic || values[i] < 0;
    }
    return h;
}

rlxvk_shape host_to_shape(call *c, const host_array *sizes)
{
    rlxvk_shape s = RLXVK_SCALAR;
    if (!sizes || !sizes->integers)
        return s;
    if (sizes->numel > RLXVK_MAX_RANK) {
        call_refuse(c, NULL, "%llu axes are more than %d", (unsigned long long)sizes->numel,
                    RLXVK_MAX_RANK);
        return s;
    }
    s.rank = (uint32_t)sizes->numel;
    memcpy(s.dims, sizes->integers, s.rank * sizeof *s.dims);
    return s;
}

/* ---- Numbers ---- */

/* Keeps the low bits of an integer, as a conversion to that type does. */
static int64_t truncate_to(int32_t type, int64_t v)
{
    uint32_t bits = onnx_type_bits(type);
    uint64_t low = bits < 64 ? (uint64_t)v & ((UINT64_C(1) << bits) - 1) : (uint64_t)v;
    bool negative = bits < 64 && onnx_is_signed(type) && low >> (bits - 1);
    if (type == ONNX_BOOL)
        return v != 0;
    return negative ? (int64_t)(low | ~((UINT64_C(1) << bits) - 1)) : (int64_t)low;
}

static bool compare(enum host_binary op, bool less, bool equal, bool greater)
{
    switch (op) {
    case HOST_EQUAL:
        return equal;
    case HOST_LESS:
        return less;
    case HOST_LESS_EQUAL:
        return less || equal;
    case HOST_GREATER:
        return greater;
    default:
        return greater || equal;
    }
}

static double real_result(enum host_binary op, double a, double b)
{
    double rest;
    switch (op) {
    case HOST_ADD:
        return a + b;
    case HOST_SUB:
        return a - b;
    case HOST_MUL:
        return a * b;
    case HOST_DIV:
        return a / b;
    case HOST_FMOD:
        return fmod(a, b);
    case HOST_MOD:
        rest = fmod(a, b);
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case HOST_MIN:
        return isnan(a) || a < b ? a : b;
    case HOST_MAX:
        return isnan(a) || a > b ? a : b;
    default:
        return 0;
    }
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* False: the result overflows, or a divisor is 0. */
static bool integer_result(enum host_binary op, int64_t a, int64_t b, int64_t *out)
{
    bool division = op == HOST_DIV || op == HOST_MOD || op == HOST_FMOD;
    if (division && (b == 0 || (a == INT64_MIN && b == -1)))
        return false;
    switch (op) {
    case HOST_ADD:
        return !add_overflows(a, b, out);
    case HOST_SUB:
        return !subtract_overflows(a, b, out);
    case HOST_MUL:
        return !multiply_overflows(a, b, out);
    case HOST_DIV:
        *out = a / b;
        return true;
    case HOST_MOD:
        *out = floor_mod(a, b);
        return true;
    case HOST_FMOD:
        *out = a % b;
        return true;
    case HOST_MIN:
    case HOST_MAX:
        *out = (op == HOST_MIN) == (a < b) ? a : b;
        return true;
    case HOST_AND:
        *out = a && b;
        return true;
    case HOST_OR:
        *out = a || b;
        return true;
    case HOST_XOR:
        *out = !a != !b;
        return true;
    default:
        *out = compare(op, a<b, a == b, a> b);
        return true;
    }
}

/* ---- Dims ---- */

/* Sums and differences of a code and a number that may be negative. */
static bool add_dims(call *c, bool subtract, int64_t a, int64_t b, bool a_is_code, int64_t *out)
{
    bool negative = b < 0 && b > rlxvk_symbol(0);
    if (a < 0 && !a_is_code)
        return !subtract && add_dims(c, true, b, -a, true, out);
    if (negative) {
        subtract = !subtract;
        b = -b;
    }
    if (subtract && a == b)
        *out = 0;
    else
        *out = subtract ? rlxvk_dim_sub(c->graph, a, b) : rlxvk_dim_add(c->graph, a, b);
    return true;
}

/* A code is a size of at least 0, so it is above every negative number. */
static bool compare_dims(enum host_binary op, int64_t a, int64_t b, bool a_is_code, bool b_is_code,
                         int64_t *out)
{
    if (a == b)
        *out = compare(op, false, true, false);
    else if (a_is_code && !b_is_code && b < 0)
        *out = compare(op, false, false, true);
    else if (b_is_code && !a_is_code && a < 0)
        *out = compare(op, true, false, false);
    else
        return false;
    return true;
}

/* False: the result is no dim, or not known. */
static bool dim_result(call *c, enum host_binary op, int64_t a, int64_t b, bool a_is_code,
                       bool b_is_code, int64_t *out)
{
    bool sizes = (a >= 0 || a_is_code) && (b >= 0 || b_is_code);
    int64_t above;
    switch (op) {
    case HOST_ADD:
    case HOST_SUB:
        return add_dims(c, op == HOST_SUB, a, b, a_is_code, out);
    case HOST_MUL:
        *out = a == 0 || b == 0 ? 0 : sizes ? rlxvk_dim_multiply(c->graph, a, b) : 0;
        return sizes;
    case HOST_DIV:
        *out = a == b ? 1 : sizes && b != 0 ? rlxvk_dim_div(c->graph, a, b) : 0;
        return sizes && b != 0;
    case HOST_MIN:
    case HOST_MAX:
        if (!compare_dims(HOST_GREATER, a, b, a_is_code, b_is_code, &above))
            return false;
        *out = (op == HOST_MAX) == (above != 0) ? a : b;
        return true;
    case HOST_EQUAL:
    case HOST_LESS:
    case HOST_LESS_EQUAL:
    case HOST_GREATER:
    case HOST_GREATER_EQUAL:
        return compare_dims(op, a, b, a_is_code, b_is_code, out);
    default:
        return false;
    }
}

static void put_integer(call *c, enum host_binary op, const host_array *a, const host_array *b,
                        host_array *h, uint64_t i)
{
    int64_t x = a->integers[i], y = b->integers[i];
    bool x_is_code = onnx_is_code(a, x), y_is_code = onnx_is_code(b, y);
    if (x_is_code || y_is_code) {
        if (!dim_result(c, op, x, y, x_is_code, y_is_code, &h->integers[i]))
            call_refuse(c, NULL,
                        "the result depends on named dims in a way that is not supported; "
                        "give them sizes (--bind NAME=SIZE)");
    } else if (!integer_result(op, x, y, &h->integers[i]))
        call_refuse(c, NULL, "%lld and %lld: the result overflows, or a divisor is 0", (long long)x,
                    (long long)y);
}

host_array *host_binary(call *c, enum host_binary op, const host_array *a, const host_array *b)
{
    host_array *h, *x, *y;
    if (!a || !b)
        return NULL;
    x = host_expand(c, a, b->shape);
    y = host_expand(c, b, a->shape);
    h = x && y ? call_make_host(c, op >= HOST_EQUAL ? ONNX_BOOL : a->type, x->shape) : NULL;
    if (h && (x->reals != NULL) != (y->reals != NULL)) {
        call_refuse(c, NULL, "its operands are of different types");
        return NULL;
    }
    for (uint64_t i = 0; h && i < h->numel && !c->failed; i++)
        if (x->integers)
            put_integer(c, op, x, y, h, i);
        else if (op >= HOST_EQUAL)
            h->integers[i] = compare(
                op, x->reals[i]<y->reals[i], x->reals[i] == y->reals[i], x->reals[i]> y->reals[i]);
        else
            h->reals[i] = onnx_round_to(a->type, real_result(op, x->reals[i], y->reals[i]));
    if (h && op < HOST_EQUAL)
        h->symbolic = x->symbolic || y->symbolic;
    return c->failed ? NULL : h;
}

static double real_unary(enum host_unary op, double x)
{
    switch (op) {
    case HOST_NEG:
        return -x;
    case HOST_ABS:
        return fabs(x);
    case HOST_FLOOR:
        return floor(x);
    case HOST_CEIL:
        return ceil(x);
    case HOST_SQRT:
        return sqrt(x);
    case HOST_SIGN:
        return (x > 0) - (x < 0);
    case HOST_ROUND:
        return rint(x);
    case HOST_RELU:
        return x < 0 ? 0 : x;
    default:
        return 1 / x;
    }
}

host_array *host_unary(call *c, enum host_unary op, const host_array *x)
{
    host_array *h = x ? call_make_host(c, x->type, x->shape) : NULL;
    for (uint64_t i = 0; h && i < h->numel; i++) {
        int64_t v = x->integers ? x->integers[i] : 0;
        if (x->reals)
            h->reals[i] = onnx_round_to(x->type, real_unary(op, x->reals[i]));
        else if (x->symbolic || v == INT64_MIN) {
            call_refuse(c, NULL,
                        "it is not supported for a value that depends on named dims; give "
                        "them sizes (--bind NAME=SIZE)");
            return NULL;
        } else
            h->integers[i] = op == HOST_NOT    ? !v
                             : op == HOST_NEG  ? -v
                             : op == HOST_ABS  ? (v < 0 ? -v : v)
                             : op == HOST_RELU ? MAX(v, 0)
                             : op == HOST_SIGN ? (v > 0) - (v < 0)
                                               : v;
    }
    return h;
}

/* ---- Other types ---- */

static int64_t real_to_integer(int32_t type, double v)
{
    if (type == ONNX_BOOL)
        return v != 0;
    if (isnan(v))
        return 0;
    return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : truncate_to(type, (int64_t)v);
}

host_array *host_cast(call *c, const host_array *x, int32_t type)
{
    host_array *h = x ? call_make_host(c, type, x->shape) : NULL;
    bool wide = type == ONNX_INT64 || type == ONNX_INT32;
    for (uint64_t i = 0; h && i < h->numel; i++) {
        if (x->symbolic && !wide && onnx_is_code(x, x->integers[i])) {
            call_refuse(c, NULL,
                        "a named dim is converted to %s; give it a size (--bind NAME=SIZE)",
                        onnx_type_name(type));
            return NULL;
        }
        if (h->reals)
            h->reals[i] = onnx_round_to(type, x->reals ? x->reals[i] : (double)x->integers[i]);
        else if (x->reals)
            h->integers[i] = real_to_integer(type, x->reals[i]);
        else
            h->integers[i] = onnx_is_code(x, x->integers[i]) ? x->integers[i]
                                                             : truncate_to(type, x->integers[i]);
    }
    if (h)
        h->symbolic = x->symbolic && wide;
    return h;
}

host_array *host_where(call *c, const host_array *condition, const host_array *x,
                       const host_array *y)
{
    host_array *h, *p, *a, *b;
    rlxvk_shape shape;
    if (!condition || !x || !y)
        return NULL;
    if (!condition->integers || x->type != y->type) {
        call_refuse(c, NULL, "its operands are of the wrong types");
        return NULL;
    }
    shape = host_broadcast(x->shape, y->shape);
    if (shape.rank <= RLXVK_MAX_RANK)
        shape = host_broadcast(condition->shape, shape);
    if (shape.rank > RLXVK_MAX_RANK) {
        call_refuse(c, NULL, "the shapes of its operands do not agree");
        return NULL;
    }
    p = host_expand(c, condition, shape);
    a = host_expand(c, x, shape);
    b = host_expand(c, y, shape);
    h = p && a && b ? call_make_host(c, x->type, shape) : NULL;
    for (uint64_t i = 0; h && i < h->numel; i++)
        host_copy(h, i, p->integers[i] ? a : b, i);
    if (h)
        h->symbolic = x->symbolic || y->symbolic;
    return h;
}
