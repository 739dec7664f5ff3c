/*
 * The references of determinants, cofactors and inverses, in double. A determinant is eliminated
 * with complete pivoting. Cofactors follow from their definition row by row: the determinant,
 * expanded along a row, is the product of that row and its cofactors. So they are orthogonal to all
 * other rows. That vector is solved for, and one of its elements is the determinant of a minor.
 *
 * Error: that of changing each element of the scaled matrix by a few u = 2^-24. A determinant then
 * moves by sums of products of all pivots but one, and cofactors by products of all but two.
 */
#include "op/matmul/det.h"

#include <math.h>
#include <string.h>

#define UNIT 0x1p-24

/* m 2^exponent, with |m| in [0.5, 1), or 0. */
typedef struct product {
    double m;
    int64_t exponent;
} product;

static product times(product p, double factor)
{
    int exponent;
    p.m = frexp(p.m * factor, &exponent);
    p.exponent = p.m == 0 ? 0 : p.exponent + exponent;
    return p;
}

static double value_of(product p, int64_t scale)
{
    int64_t exponent = p.exponent + scale;
    return ldexp(p.m, (int)MAX(MIN(exponent, 5000), -5000));
}

/* A matrix, scaled by powers of two. */
typedef struct matrix {
    uint64_t n;
    double *scaled, *work, *pivots, *solution;
    int *rows, *columns; /* exponents */
    uint64_t *places;    /* columns of the work that pivots moved */
    int64_t scale;       /* the sum of all exponents */
    bool finite, blank;  /* blank: a row or a column is 0 */
} matrix;

static void free_matrix(matrix *m)
{
    memory_free(m->scaled);
    memory_free(m->rows);
    memory_free(m->places);
}

static rlxvk_status make_matrix(matrix *m, uint64_t n)
{
    *m = (matrix){.n = n};
    m->scaled = memory_zeroed(2 * n * n + 2 * n + 1, sizeof *m->scaled);
    m->rows = memory_zeroed(2 * n + 1, sizeof *m->rows);
    m->places = memory_zeroed(n + 1, sizeof *m->places);
    if (!m->scaled || !m->rows || !m->places) {
        free_matrix(m);
        return status_fail_memory("determinants");
    }
    m->work = m->scaled + n * n;
    m->pivots = m->work + n * n;
    m->solution = m->pivots + n;
    m->columns = m->rows + n;
    return RLXVK_OK;
}

/* The exponent of the largest |v| of `count`, each less the exponent that scales it already. */
static int largest_exponent(const float *v, uint64_t count, uint64_t stride, const int *less,
                            bool *blank)
{
    int most = INT32_MIN;
    for (uint64_t i = 0; i < count; i++)
        if (v[i * stride] != 0)
            most = MAX(most, ilogb((double)v[i * stride]) - (less ? less[i] : 0));
    *blank = *blank || most == INT32_MIN;
    return most == INT32_MIN ? 0 : most;
}

static void load(matrix *m, const float *a)
{
    uint64_t n = m->n;
    m->finite = true;
    m->blank = false;
    m->scale = 0;
    for (uint64_t i = 0; i < n * n; i++)
        m->finite = m->finite && isfinite(a[i]);
    for (uint64_t i = 0; i < n && m->finite; i++)
        m->scale += m->rows[i] = largest_exponent(a + i * n, n, 1, NULL, &m->blank);
    for (uint64_t j = 0; j < n && m->finite; j++)
        m->scale += m->columns[j] = largest_exponent(a + j, n, n, m->rows, &m->blank);
    for (uint64_t i = 0; i < n * n && m->finite; i++)
        m->scaled[i] = ldexp((double)a[i], -m->rows[i / n] - m->columns[i % n]);
}

static void exchange(double *a, double *b, uint64_t count, uint64_t stride)
{
    for (uint64_t i = 0; i < count; i++) {
        double upper = a[i * stride];
        a[i * stride] = b[i * stride];
        b[i * stride] = upper;
    }
}

/* Brings the largest element at or behind (k, k) of the work there. Returns the sign of that. */
static double take_pivot(matrix *m, uint64_t k, uint64_t rows)
{
    uint64_t n = m->n, at = k, column = k;
    for (uint64_t i = k; i < rows; i++)
        for (uint64_t j = k; j < n; j++)
            if (fabs(m->work[i * n + j]) > fabs(m->work[at * n + column])) {
                at = i;
                column = j;
            }
    exchange(m->work + k * n, m->work + at * n, n, 1);
    exchange(m->work + k, m->work + column, rows, n);
    uint64_t moved = m->places[k];
    m->places[k] = m->places[column];
    m->places[column] = moved;
    return (at != k) == (column != k) ? 1 : -1;
}

/* Eliminates the first `rows` rows of the work, and leaves their pivots. Returns the sign of the
 * exchanges. */
static double eliminate(matrix *m, uint64_t rows)
{
    uint64_t n = m->n;
    double sign = 1;
    for (uint64_t j = 0; j < n; j++)
        m->places[j] = j;
    for (uint64_t k = 0; k < rows; k++) {
        sign *= take_pivot(m, k, rows);
        double pivot = m->pivots[k] = m->work[k * n + k];
        for (uint64_t i = k + 1; i < rows && pivot != 0; i++) {
            double factor = m->work[i * n + k] / pivot;
            for (uint64_t j = k; factor != 0 && j < n; j++)
                m->work[i * n + j] -= factor * m->work[k * n + j];
        }
    }
    return sign;
}

/* How far the product of `count` pivots of the scaled matrix may be off. Pivots count as at least
 * 2^-24 of the first, because rounding may make them so large. */
static product error_of(const matrix *m, const double *pivots, uint64_t count)
{
    product all = {1, 0}, sum = {0, 0};
    double inverses = 0;
    for (uint64_t k = 0; k < count; k++) {
        double pivot = fmax(fabs(pivots[k]), UNIT * fabs(pivots[0]));
        if (pivot == 0)
            return sum;
        all = times(all, pivot);
        inverses += 1 / pivot;
    }
    return times(all, 4 * UNIT * (double)m->n * inverses);
}

/* ---- Determinants ---- */

typedef struct determinant {
    product value, error;
    int64_t scale;
} determinant;

static determinant determinant_of(matrix *m)
{
    determinant d = {.value = {1, 0}, .scale = m->scale};
    memcpy(m->work, m->scaled, m->n * m->n * sizeof *m->work);
    d.value.m = eliminate(m, m->n);
    for (uint64_t k = 0; k < m->n; k++)
        d.value = times(d.value, m->pivots[k]);
    if (m->blank)
        d.value = (product){0, 0};
    else
        d.error = error_of(m, m->pivots, m->n);
    return d;
}

/* Sets the bound of an element. If the value may be infinite or not, it is open. */
static void give_bound(const host_call *c, uint64_t element, double bound)
{
    double value = fabs(c->out[element]);
    if (!c->bound)
        return;
    c->bound[element] = bound;
    if (value + bound > FLT_MAX && value - bound <= FLT_MAX)
        host_leave_open(c, element);
}

static void give_value(const host_call *c, uint64_t slice, matrix *m, const float *a)
{
    if (!m->finite) {
        c->out[slice] = m->n == 1 ? (double)a[0] : NAN;
        return;
    }
    determinant d = determinant_of(m);
    c->out[slice] = value_of(d.value, d.scale);
    give_bound(c, slice, value_of(d.error, d.scale));
}

/* If the determinant may be 0, its sign and logarithm are open. */
static void give_logarithm(const host_call *c, uint64_t slice, matrix *m, const float *a)
{
    uint64_t behind = slice + shape_numel(&c->node->shape) / 2;
    if (!m->finite) {
        double v = m->n == 1 ? (double)a[0] : NAN;
        c->out[slice] = isnan(v) ? v : v > 0 ? 1 : -1;
        c->out[behind] = log(fabs(v));
        return;
    }
    determinant d = determinant_of(m);
    c->out[slice] = d.value.m > 0 ? 1 : d.value.m < 0 ? -1 : 0;
    c->out[behind] = log(fabs(d.value.m)) + (double)(d.value.exponent + d.scale) * log(2.0);
    if (!c->bound || m->blank)
        return;
    double relative = value_of(d.error, -d.value.exponent) / fabs(d.value.m);
    c->bound[behind] = 2 * relative + 4e-7 * fabs(c->out[behind]);
    if (!(relative < 0.25)) {
        host_leave_open(c, slice);
        host_leave_open(c, behind);
    }
}

static rlxvk_status each_matrix(const host_call *c, void (*give)(const host_call *c, uint64_t slice,
                                                                 matrix *m, const float *a))
{
    det_matrices all = det_matrices_of(&c->inputs[0].node->shape);
    matrix m;
    rlxvk_status status = make_matrix(&m, all.n);
    if (status != RLXVK_OK)
        return status;
    for (uint64_t slice = 0; slice < all.batch; slice++) {
        const float *a = c->inputs[0].words + slice * all.n * all.n;
        load(&m, a);
        give(c, slice, &m, a);
    }
    free_matrix(&m);
    return RLXVK_OK;
}

rlxvk_status det_host(const host_call *call)
{
    return each_matrix(call, give_value);
}

rlxvk_status det_host_logarithm(const host_call *call)
{
    return each_matrix(call, give_logarithm);
}

/* ---- Cofactors ---- */

/* Solves for the vector that is orthogonal to n - 1 rows in echelon form, with 1 at the last of
 * their columns. */
static void solve_orthogonal(matrix *m)
{
    uint64_t n = m->n;
    m->solution[n - 1] = 1;
    for (uint64_t k = n - 1; k-- > 0;) {
        double sum = 0;
        for (uint64_t j = k + 1; j < n; j++)
            sum -= m->work[k * n + j] * m->solution[j];
        m->solution[k] = sum / m->work[k * n + k];
    }
}

/* The cofactors of a row of the scaled matrix. The row becomes the last one. */
static void give_row(matrix *m, uint64_t row, double *out)
{
    uint64_t n = m->n;
    product minor = {(n - 1 - row) % 2 ? -1 : 1, 0};
    memcpy(m->work, m->scaled, row * n * sizeof *m->work);
    memcpy(m->work + row * n, m->scaled + (row + 1) * n, (n - 1 - row) * n * sizeof *m->work);
    minor.m *= eliminate(m, n - 1);
    for (uint64_t k = 0; k + 1 < n; k++)
        minor = times(minor, m->pivots[k]);
    if (minor.m == 0) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    solve_orthogonal(m);
    for (uint64_t j = 0; j < n; j++) {
        uint64_t column = m->places[j];
        out[column] =
            value_of(times(minor, m->solution[j]), m->scale - m->rows[row] - m->columns[column]);
    }
}

/* All n x n results of a matrix that is not finite. */
static void give_all(const host_call *c, uint64_t slice, const matrix *m, double value)
{
    uint64_t count = m->n * m->n;
    for (uint64_t i = 0; i < count; i++)
        c->out[slice * count + i] = value;
}

static void give_cofactors(const host_call *c, uint64_t slice, matrix *m, const float *a)
{
    uint64_t n = m->n, first = slice * n * n;
    product error = {0, 0};
    (void)a;
    if (!m->finite) {
        give_all(c, slice, m, n == 1 ? 1 : NAN);
        return;
    }
    if (c->bound) {
        memcpy(m->work, m->scaled, n * n * sizeof *m->work);
        eliminate(m, n);
        error = error_of(m, m->pivots, n - 1);
    }
    for (uint64_t row = 0; row < n; row++) {
        give_row(m, row, c->out + first + row * n);
        for (uint64_t j = 0; j < n; j++)
            give_bound(c, first + row * n + j,
                       value_of(error, m->scale - m->rows[row] - m->columns[j]));
    }
}

rlxvk_status det_host_cofactors(const host_call *call)
{
    return each_matrix(call, give_cofactors);
}

/* ---- Inverses ---- */

/* Solves scaled x = 1 by Gauss-Jordan elimination. False: a pivot is 0. */
static bool solve_identity(matrix *m, double *x)
{
    uint64_t n = m->n;
    memcpy(m->work, m->scaled, n * n * sizeof *m->work);
    memset(x, 0, n * n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i * n + i] = 1;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t at = k;
        for (uint64_t i = k + 1; i < n; i++)
            if (fabs(m->work[i * n + k]) > fabs(m->work[at * n + k]))
                at = i;
        if (m->work[at * n + k] == 0)
            return false;
        exchange(m->work + k * n, m->work + at * n, n, 1);
        exchange(x + k * n, x + at * n, n, 1);
        for (uint64_t i = 0; i < n; i++) {
            double factor = i == k ? 0 : m->work[i * n + k] / m->work[k * n + k];
            for (uint64_t j = 0; factor != 0 && j < n; j++) {
                m->work[i * n + j] -= factor * m->work[k * n + j];
                x[i * n + j] -= factor * x[k * n + j];
            }
        }
    }
    for (uint64_t i = 0; i < n * n; i++)
        x[i] /= m->work[i / n * n + i / n];
    return true;
}

/* A change of the scaled matrix by e moves its inverse x by x e x. */
static void give_inverse(const host_call *c, uint64_t slice, matrix *m, const float *a)
{
    uint64_t n = m->n, first = slice * n * n;
    double *x = c->out + first, *rows = m->pivots, *columns = m->solution, most = 0;
    double change = 8 * UNIT * (double)n;
    (void)a;
    if (!m->finite) {
        give_all(c, slice, m, NAN);
        return;
    }
    bool regular = !m->blank && solve_identity(m, x);
    memset(rows, 0, 2 * n * sizeof *rows); /* and the columns, which follow */
    for (uint64_t i = 0; i < n * n && regular; i++) {
        rows[i / n] += fabs(x[i]);
        columns[i % n] += fabs(x[i]);
        most = fmax(most, fmax(rows[i / n], columns[i % n]));
    }
    for (uint64_t i = 0; i < n * n; i++) {
        int64_t scale = -(int64_t)m->columns[i / n] - m->rows[i % n];
        double error = change * rows[i / n] * columns[i % n] + 2 * UNIT * fabs(x[i]);
        x[i] = regular ? ldexp(x[i], (int)scale) : NAN;
        if (regular)
            give_bound(c, first + i, ldexp(error, (int)scale));
        if (c->bound && !m->blank && !(regular && change * most < 0.25))
            host_leave_open(c, first + i);
    }
}

rlxvk_status det_host_inverse(const host_call *call)
{
    return each_matrix(call, give_inverse);
}
