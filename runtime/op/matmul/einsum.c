/*
 * einsum: sums of products that are named by letters. Operands are taken from left to right. If a
 * letter repeats in an operand, its diagonal is taken. Letters that nothing else has are summed
 * over. Two operands become a product (dot_general), or an elementwise one if nothing is summed
 * over.
 *
 * The dims of "..." are labels of their own, after the letters. They are counted from the last dim.
 */
#include "graph/symbol.h"
#include "op/compose/composite.h"

#include <rlxvk_ops_array.h>

#include <string.h>

static const char row[] = "einsum";

enum { MOST_OPERANDS = 32, LETTERS = 52, LABELS = LETTERS + RLXVK_MAX_RANK };

/* A tensor and the label of each of its axes. */
typedef struct term {
    rlxvk_tensor tensor;
    uint32_t rank;
    uint8_t labels[RLXVK_MAX_RANK];
} term;

typedef struct contraction {
    rlxvk_graph *g;
    const char *equation;
    uint32_t count;
    term terms[MOST_OPERANDS], result; /* the result has only labels */
    int64_t dims[LABELS];
    bool seen[LABELS];     /* the dim of the label is known */
    uint32_t uses[LABELS]; /* how many coming terms have it, and the result */
} contraction;

static int label_of(char c)
{
    if (c >= 'a' && c <= 'z')
        return c - 'a';
    return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

static bool fail_at(const contraction *c, const char *at, const char *what)
{
    return composite_fail(c->g, row, RLXVK_E_ATTR, "equation \"%.80s\": %s at place %zu",
                          c->equation, what, (size_t)(at - c->equation));
}

static int find_label(const term *t, uint32_t label)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->labels[i] == label)
            return (int)i;
    return -1;
}

static bool has(const term *t, uint32_t label)
{
    return find_label(t, label) >= 0;
}

/* Reads the letters up to a comma, an arrow or the end. "..." stands for `left_out` dims. */
static bool read_term(const contraction *c, const char **at, uint32_t left_out, term *t)
{
    bool dots = false;
    for (; **at && **at != ',' && **at != '-'; ++*at) {
        uint32_t more = 1;
        if (**at == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0 && !dots) {
            dots = true;
            more = left_out;
            *at += 2;
        } else if (label_of(**at) < 0) {
            return fail_at(c, *at, "neither a letter nor one \"...\"");
        }
        if (t->rank + more > RLXVK_MAX_RANK)
            return fail_at(c, *at, "more axes than a tensor may have");
        for (uint32_t i = 0; i < more; i++)
            t->labels[t->rank++] =
                (uint8_t)(**at == '.' ? LETTERS + left_out - 1 - i : (uint32_t)label_of(**at));
    }
    return true;
}

/* How many letters the term at `at` has. */
static uint32_t letters_in(const char *at, bool *out_dots)
{
    uint32_t letters = 0;
    for (*out_dots = false; *at && *at != ',' && *at != '-'; at++) {
        letters += label_of(*at) >= 0;
        *out_dots |= *at == '.';
    }
    return letters;
}

static bool take_dims(contraction *c, uint32_t i)
{
    const term *t = &c->terms[i];
    rlxvk_shape s = rlxvk_tensor_shape(c->g, t->tensor);
    char texts[2][SHAPE_TEXT];
    for (uint32_t k = 0; k < t->rank; k++) {
        bool *seen = &c->seen[t->labels[k]];
        int64_t *dim = &c->dims[t->labels[k]];
        bool spreads = t->labels[k] >= LETTERS && (*dim == 1 || s.dims[k] == 1);
        if (*seen && *dim != s.dims[k] && !spreads)
            return composite_fail(c->g, row, RLXVK_E_SHAPE,
                                  "axis %u of operand %u is %s where the same label is %s before; "
                                  "they must be equal",
                                  k, i, symbol_shape_text(c->g, &RLXVK_SHAPE(s.dims[k]), texts[0]),
                                  symbol_shape_text(c->g, &RLXVK_SHAPE(*dim), texts[1]));
        *dim = !*seen || *dim == 1 ? s.dims[k] : *dim;
        *seen = true;
    }
    return true;
}

static bool read_operands(contraction *c, const char **at)
{
    for (uint32_t i = 0; i < c->count; i++) {
        rlxvk_shape s = rlxvk_tensor_shape(c->g, c->terms[i].tensor);
        bool dots;
        uint32_t letters = letters_in(*at, &dots);
        if (!read_term(c, at, dots && letters < s.rank ? s.rank - letters : 0, &c->terms[i]))
            return false;
        if (letters > s.rank || (letters < s.rank && !dots))
            return composite_fail(c->g, row, RLXVK_E_SHAPE,
                                  "operand %u has rank %u, and %u letters in \"%.80s\"", i, s.rank,
                                  letters, c->equation);
        if (!take_dims(c, i))
            return false;
        if (i + 1 < c->count && *(*at)++ != ',')
            return composite_fail(c->g, row, RLXVK_E_ARITY, "%u operands, and %u in \"%.80s\"",
                                  c->count, i + 1, c->equation);
    }
    if (**at == ',')
        return composite_fail(c->g, row, RLXVK_E_ARITY, "%u operands, and more in \"%.80s\"",
                              c->count, c->equation);
    return true;
}

/* How many dims "..." stands for, in the operand that has most of them. */
static uint32_t dots_rank(const contraction *c)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->terms[i].rank; k++)
            if (c->terms[i].labels[k] >= LETTERS)
                rank = MAX(rank, c->terms[i].labels[k] - LETTERS + 1u);
    return rank;
}

static bool is_named(const contraction *c, uint32_t label)
{
    bool found = false;
    for (uint32_t i = 0; i < c->count; i++)
        found |= has(&c->terms[i], label);
    return found;
}

/* The result of an equation without an arrow: the dims of "...", then the letters that occur once,
 * in alphabetical order with capital letters first. */
static bool imply_result(contraction *c)
{
    for (uint32_t i = dots_rank(c); i-- > 0;)
        c->result.labels[c->result.rank++] = (uint8_t)(LETTERS + i);
    for (uint32_t i = 0; i < LETTERS; i++) {
        uint32_t label = (i + 26) % LETTERS, times = 0;
        for (uint32_t k = 0; k < c->count; k++)
            for (uint32_t j = 0; j < c->terms[k].rank; j++)
                times += c->terms[k].labels[j] == label;
        if (times != 1)
            continue;
        if (c->result.rank == RLXVK_MAX_RANK)
            return composite_fail(c->g, row, RLXVK_E_SHAPE,
                                  "the result would have more than %d axes", RLXVK_MAX_RANK);
        c->result.labels[c->result.rank++] = (uint8_t)label;
    }
    return true;
}

static bool read_result(contraction *c, const char *at)
{
    if (!*at)
        return imply_result(c);
    if (at[1] != '>')
        return fail_at(c, at, "no arrow \"->\"");
    at += 2;
    if (!read_term(c, &at, dots_rank(c), &c->result))
        return false;
    if (*at)
        return fail_at(c, at, "something behind the result");
    for (uint32_t i = 0; i < c->result.rank; i++) {
        uint32_t label = c->result.labels[i];
        if (!is_named(c, label))
            return fail_at(c, at, "a letter of the result that no operand has");
        if (find_label(&c->result, label) != (int)i)
            return fail_at(c, at, "a letter twice in the result");
    }
    return true;
}

/* ---- One operand ---- */

static void drop_axis(term *t, uint32_t axis)
{
    t->rank--;
    memmove(t->labels + axis, t->labels + axis + 1, t->rank - axis);
}

/* Axes i < j of one length n become one. Both are moved to the front and joined, and every (n +
 * 1)th element of the joined axis is taken. */
static bool take_diagonal(contraction *c, term *t, uint32_t i, uint32_t j)
{
    const int64_t first = RLXVK_SLICE_FIRST, last = RLXVK_SLICE_LAST;
    rlxvk_shape s = rlxvk_tensor_shape(c->g, t->tensor), joined = {.rank = 1};
    int32_t order[RLXVK_MAX_RANK] = {(int32_t)i, (int32_t)j};
    uint8_t labels[RLXVK_MAX_RANK] = {t->labels[i]};
    int64_t n = s.dims[i], step;
    if (!composite_number(c->g, row, "the length of a diagonal", n))
        return false;
    if (multiply_overflows(n, n, &joined.dims[0]) || add_overflows(n, 1, &step))
        return composite_fail(c->g, row, RLXVK_E_TOO_LARGE, "the diagonal of %lld by %lld",
                              (long long)n, (long long)n);
    for (uint32_t k = 0; k < t->rank; k++)
        if (k != i && k != j) {
            order[joined.rank + 1] = (int32_t)k;
            labels[joined.rank] = t->labels[k];
            joined.dims[joined.rank++] = s.dims[k];
        }
    rlxvk_tensor x = rlxvk_transpose(c->g, t->tensor, order, t->rank);
    x = rlxvk_reshape(c->g, x, joined);
    t->tensor = rlxvk_slice(c->g, x, &first, &last, &step, 1);
    t->rank = joined.rank;
    memcpy(t->labels, labels, t->rank);
    return c->g->status == RLXVK_OK;
}

static bool take_diagonals(contraction *c, term *t)
{
    for (uint32_t j = 1; j < t->rank; j++) {
        uint32_t i = (uint32_t)find_label(t, t->labels[j]);
        if (i < j) {
            if (!take_diagonal(c, t, i, j))
                return false;
            j = 0;
        }
    }
    return true;
}

/* Sums over labels that neither `other`, nor a coming term, nor the result has. It also drops axes
 * of size 1 that broadcast, because another term has the full dim. */
static void settle(contraction *c, term *t, const term *other)
{
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = 0;
    rlxvk_shape s = rlxvk_tensor_shape(c->g, t->tensor);
    for (uint32_t k = 0; k < t->rank; k++)
        if ((c->uses[t->labels[k]] == 0 && !has(other, t->labels[k])) ||
            (s.dims[k] == 1 && c->dims[t->labels[k]] != 1))
            axes[count++] = (int32_t)k;
    if (count)
        t->tensor = rlxvk_reduce_sum(c->g, t->tensor, axes, count, false);
    while (count > 0)
        drop_axis(t, (uint32_t)axes[--count]);
}

/* ---- Two ---- */

typedef struct pairing {
    int32_t axes[2][2][RLXVK_MAX_RANK]; /* labels contracted or kept, by operand */
    size_t counts[2];
    term kept; /* labels of the product: kept in both, only left's, only right's */
} pairing;

static bool append_label(contraction *c, term *t, uint8_t label)
{
    if (t->rank == RLXVK_MAX_RANK)
        return composite_fail(c->g, row, RLXVK_E_SHAPE,
                              "a product on the way has more than %d axes; take the operands in "
                              "another order",
                              RLXVK_MAX_RANK);
    t->labels[t->rank++] = label;
    return true;
}

static bool pair_up(contraction *c, const term *l, const term *r, pairing *p)
{
    bool fits = true;
    for (uint32_t i = 0; i < l->rank; i++) {
        int j = find_label(r, l->labels[i]);
        if (j < 0)
            continue;
        bool kept = c->uses[l->labels[i]] > 0;
        p->axes[kept][0][p->counts[kept]] = (int32_t)i;
        p->axes[kept][1][p->counts[kept]++] = j;
        fits = fits && (!kept || append_label(c, &p->kept, l->labels[i]));
    }
    for (uint32_t i = 0; i < l->rank && fits; i++)
        fits = has(r, l->labels[i]) || append_label(c, &p->kept, l->labels[i]);
    for (uint32_t i = 0; i < r->rank && fits; i++)
        fits = has(l, r->labels[i]) || append_label(c, &p->kept, r->labels[i]);
    return fits;
}

/* t with its axes in the order of `to`. Axes that t lacks get size 1. */
static rlxvk_tensor laid_out(contraction *c, const term *t, const term *to)
{
    rlxvk_shape s = rlxvk_tensor_shape(c->g, t->tensor), shape = RLXVK_SCALAR;
    int32_t order[RLXVK_MAX_RANK];
    size_t count = 0;
    bool moved = false;
    for (uint32_t i = 0; i < to->rank; i++) {
        int at = find_label(t, to->labels[i]);
        shape.dims[shape.rank++] = at < 0 ? 1 : s.dims[at];
        if (at >= 0) {
            moved |= at != (int)count;
            order[count++] = at;
        }
    }
    rlxvk_tensor x = moved ? rlxvk_transpose(c->g, t->tensor, order, count) : t->tensor;
    return shape.rank == s.rank ? x : rlxvk_reshape(c->g, x, shape);
}

static bool multiply(contraction *c, term *l, const term *r)
{
    pairing p = {0};
    if (!pair_up(c, l, r, &p))
        return false;
    if (p.counts[false] == 0) {
        p.kept.tensor = rlxvk_mul(c->g, laid_out(c, l, &p.kept), laid_out(c, r, &p.kept));
    } else {
        rlxvk_dot_general_options o = {.lhs_contracting = p.axes[false][0],
                                       .rhs_contracting = p.axes[false][1],
                                       .contracting_count = p.counts[false],
                                       .lhs_batch = p.axes[true][0],
                                       .rhs_batch = p.axes[true][1],
                                       .batch_count = p.counts[true]};
        p.kept.tensor = rlxvk_dot_general(c->g, l->tensor, r->tensor, &o);
    }
    *l = p.kept;
    return c->g->status == RLXVK_OK;
}

static void count_uses(contraction *c, const term *t, uint32_t by)
{
    for (uint32_t label = 0; label < LABELS; label++)
        if (has(t, label))
            c->uses[label] += by;
}

static rlxvk_tensor contract(contraction *c)
{
    static const term none;
    term *left = &c->terms[0];
    count_uses(c, &c->result, 1);
    for (uint32_t i = 0; i < c->count; i++)
        count_uses(c, &c->terms[i], 1);
    for (uint32_t i = 0; i < c->count; i++) {
        term *t = &c->terms[i];
        if (!take_diagonals(c, t))
            return RLXVK_NONE;
        count_uses(c, t, -1u);
        settle(c, t, i > 0 ? left : &none);
        if (i > 0 && !multiply(c, left, t))
            return RLXVK_NONE;
        if (i > 0)
            settle(c, left, &none);
        if (c->g->status != RLXVK_OK)
            return RLXVK_NONE;
    }
    return laid_out(c, left, &c->result);
}

rlxvk_tensor rlxvk_einsum(rlxvk_graph *g, const char *equation, const rlxvk_tensor *operands,
                          size_t count)
{
    contraction c = {.g = g, .equation = equation, .count = (uint32_t)count};
    const char *at = equation;
    if (!graph_ready(g, row) || graph_fail(g, status_require(equation, row, "equation")) ||
        graph_fail(g, status_require_items(operands, count, row, "operands")))
        return RLXVK_NONE;
    if (count == 0 || count > MOST_OPERANDS) {
        composite_fail(g, row, RLXVK_E_ARITY, "%zu operands; 1 to %d", count, MOST_OPERANDS);
        return RLXVK_NONE;
    }
    if (!composite_begin(g, row, operands, count))
        return RLXVK_NONE;
    for (size_t i = 0; i < count; i++)
        c.terms[i].tensor = operands[i];
    if (!read_operands(&c, &at) || !read_result(&c, at))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    return composite_end(g, row, start, contract(&c));
}
