/*
 * Prints arrays as text, as NumPy's arrayprint does. It goes twice over the shown elements. The
 * first pass finds the common format (e notation or not, the width), and the second writes.
 *
 * A float gets the fewest digits that distinguish it from its neighbours of the same type. It has
 * at most as many digits behind the point as the precision.
 */
#include "base/sized.h"
#include "graph/graph.h"
#include "graph/half.h"

#include <math.h>
#include <rlxvk_inspect.h>
#include <stdio.h>
#include <string.h>

#define MOST_PRECISION 40
#define WORD_ROOM      256 /* a complex number of the highest precision */

/* The format of one part of all numbers: real or imaginary. */
typedef struct number_format {
    bool plus;        /* positive numbers get a sign, too */
    bool exponential; /* e notation */
    int left, right;  /* characters before and after the point; in e notation, `right` includes
                       * "e+10" */
    int digits;       /* behind the point, in e notation */
    int exponent;     /* digits of the exponent */
} number_format;

typedef struct printer {
    const uint8_t *data;
    rlxvk_dtype dtype;
    const rlxvk_shape *shape;
    int64_t strides[RLXVK_MAX_RANK];
    bool summary;
    int64_t edge;
    uint64_t width;
    int precision;
    number_format parts[2];
    int integer_width;
    text_output out;
    uint64_t line, spaces; /* characters in the line; spaces held back until more follows */
} printer;

/* ---- Elements ---- */

static const uint8_t *element(const printer *p, uint64_t index)
{
    return p->data + index * rlxvk_dtype_size(p->dtype);
}

/* A real number, or one part of a complex number. */
static double real_of(const printer *p, uint64_t index, int part)
{
    const uint8_t *at = element(p, index);
    double wide;
    float value;
    uint16_t half;
    if (p->dtype == RLXVK_F64)
        return *(double *)memcpy(&wide, at, sizeof wide);
    if (p->dtype == RLXVK_F16 || p->dtype == RLXVK_BF16) {
        memcpy(&half, at, sizeof half);
        return p->dtype == RLXVK_F16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
    return *(float *)memcpy(&value, at + (size_t)part * sizeof value, sizeof value);
}

static int64_t integer_of(const printer *p, uint64_t index)
{
    const uint8_t *at = element(p, index);
    size_t size = rlxvk_dtype_size(p->dtype);
    uint64_t bits = 0;
    for (size_t i = 0; i < size; i++)
        bits |= (uint64_t)at[i] << 8 * i;
    bool is_signed = p->dtype != RLXVK_U8 && p->dtype != RLXVK_U32;
    uint64_t sign = is_signed ? 1ull << (8 * size - 1) : 0;
    return (int64_t)((bits ^ sign) - sign);
}

/* ---- Digits ---- */

/* d.ddd x 10^exponent, with `count` digits. */
typedef struct decimal {
    char digits[MOST_PRECISION + 8];
    int count, exponent;
} decimal;

/* Rounds to so many digits behind the first one. Skips the locale's decimal point. */
static decimal round_to(double magnitude, int behind)
{
    char written[MOST_PRECISION + 24];
    decimal d = {.count = 0};
    snprintf(written, sizeof written, "%.*e", behind, magnitude);
    const char *at = written;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            d.digits[d.count++] = *at;
    bool negative = *++at == '-';
    for (at++; *at; at++)
        d.exponent = d.exponent * 10 + (*at - '0');
    d.exponent = negative ? -d.exponent : d.exponent;
    return d;
}

/* Whether the digits identify the number among all numbers of its type. */
static bool tells(rlxvk_dtype dtype, const decimal *d, double magnitude)
{
    char written[MOST_PRECISION + 32];
    text t = {.buffer = written, .size = sizeof written};
    text_append(&t, "%.1s.%.*se%d", d->digits, d->count - 1, d->digits + 1, d->exponent);
    double read = text_to_real(written, NULL);
    if (dtype == RLXVK_F64)
        return read == magnitude;
    if (dtype == RLXVK_F16)
        return f32_to_f16((float)read) == f32_to_f16((float)magnitude);
    if (dtype == RLXVK_BF16)
        return f32_to_bf16((float)read) == f32_to_bf16((float)magnitude);
    return (float)read == (float)magnitude;
}

static void trim(decimal *d)
{
    while (d->count > 1 && d->digits[d->count - 1] == '0')
        d->count--;
}

static decimal fewest_digits(rlxvk_dtype dtype, double magnitude)
{
    decimal d = {.digits = "0", .count = 1};
    if (magnitude == 0)
        return d;
    for (int behind = 0; behind < 17; behind++) {
        d = round_to(magnitude, behind);
        if (tells(dtype, &d, magnitude))
            break;
    }
    trim(&d);
    return d;
}

/* The digits for e notation, at most as many as the precision allows. */
static decimal scientific(const printer *p, double magnitude)
{
    decimal d = fewest_digits(p->dtype, magnitude);
    if (d.count - 1 > p->precision) {
        d = round_to(magnitude, p->precision);
        trim(&d);
    }
    return d;
}

/* Splits 12.5 into "12" and "5". The fraction has no zeros at its end, and is "" for a whole
 * number. All numbers that are written this way are below 1e8 (find_format). */
static void positional(const printer *p, double magnitude, char whole[WORD_ROOM],
                       char fraction[WORD_ROOM])
{
    decimal d = fewest_digits(p->dtype, magnitude);
    int behind, length;
    if (d.count <= d.exponent) /* get all digits before the point */
        d = round_to(magnitude, d.exponent);
    behind = MAX(d.count - 1 - d.exponent, 0);
    char written[WORD_ROOM];
    if (behind <= p->precision) { /* no rounding is needed */
        int before = MAX(d.exponent + 1, 0), at = 0;
        for (int i = 0; i < before; i++)
            whole[at++] = d.digits[i];
        if (before == 0)
            whole[at++] = '0';
        whole[at] = 0;
        at = 0;
        for (int i = d.exponent + 1; i < d.count; i++)
            fraction[at++] = i < 0 ? '0' : d.digits[i];
        fraction[at] = 0;
        return;
    }
    snprintf(written, sizeof written, "%.*f", p->precision, magnitude);
    length = (int)strspn(written, "0123456789");
    snprintf(whole, WORD_ROOM, "%.*s", length, written);
    snprintf(fraction, WORD_ROOM, "%s", written + strlen(written) - (size_t)p->precision);
    for (length = p->precision; length && fraction[length - 1] == '0';)
        fraction[--length] = 0;
}

/* ---- The shown elements ---- */

typedef void visitor(printer *p, uint64_t index, void *user);

static bool is_cut(const printer *p, uint32_t axis)
{
    return p->summary && p->shape->dims[axis] > 2 * p->edge;
}

/* Calls `call` for every shown element, from `axis` on. */
static void visit(printer *p, uint32_t axis, uint64_t index, visitor *call, void *user)
{
    if (axis == p->shape->rank) {
        call(p, index, user);
        return;
    }
    int64_t length = p->shape->dims[axis];
    for (int64_t i = 0; i < length; i++) {
        if (is_cut(p, axis) && i == p->edge)
            i = length - p->edge;
        visit(p, axis + 1, index + (uint64_t)(i * p->strides[axis]), call, user);
    }
}

/* ---- First pass ---- */

typedef struct survey {
    int part;
    double largest, smallest; /* magnitudes of finite numbers that are not 0 */
    bool finite, nan, infinity, minus_infinity;
    int longest; /* integers */
} survey;

static void look(printer *p, uint64_t index, void *user)
{
    survey *s = user;
    double v = real_of(p, index, s->part), magnitude = fabs(v);
    if (isnan(v)) {
        s->nan = true;
    } else if (isinf(v)) {
        s->infinity = true;
        s->minus_infinity = s->minus_infinity || v < 0;
    } else {
        s->finite = true;
        if (magnitude != 0) {
            s->largest = MAX(s->largest, magnitude);
            s->smallest = s->smallest == 0 ? magnitude : MIN(s->smallest, magnitude);
        }
    }
}

static void measure(printer *p, uint64_t index, void *user)
{
    const survey *s = user;
    number_format *f = &p->parts[s->part];
    char whole[WORD_ROOM], fraction[WORD_ROOM];
    double v = real_of(p, index, s->part);
    int sign = signbit(v) || f->plus;
    if (!isfinite(v))
        return;
    if (f->exponential) {
        decimal d = scientific(p, fabs(v));
        f->left = MAX(f->left, sign + 1);
        f->digits = MAX(f->digits, d.count - 1);
        f->exponent = MAX(f->exponent, d.exponent > 99 || d.exponent < -99 ? 3 : 2);
    } else {
        positional(p, fabs(v), whole, fraction);
        f->left = MAX(f->left, sign + (int)strlen(whole));
        f->right = MAX(f->right, (int)strlen(fraction));
    }
}

/* Divides in the precision of the element type. */
static double ratio(rlxvk_dtype dtype, double a, double b)
{
    return dtype == RLXVK_F64 ? a / b : (double)((float)a / (float)b);
}

static void find_format(printer *p, int part)
{
    survey s = {.part = part};
    number_format *f = &p->parts[part];
    *f = (number_format){.plus = part == 1};
    visit(p, 0, 0, look, &s);
    f->exponential = s.largest != 0 && (s.largest >= 1e8 || s.smallest < 1e-4 ||
                                        ratio(p->dtype, s.largest, s.smallest) > 1000);
    visit(p, 0, 0, measure, &s);
    if (f->exponential)
        f->right = f->exponent + 2 + f->digits;
    if (s.nan)
        f->left = MAX(f->left, 3 - (f->right + 1));
    if (s.nan || s.infinity)
        f->left = MAX(f->left, 3 + (f->plus || s.minus_infinity) - (f->right + 1));
}

static void measure_integer(printer *p, uint64_t index, void *user)
{
    char word[WORD_ROOM];
    (void)user;
    int length = snprintf(word, sizeof word, "%lld", (long long)integer_of(p, index));
    p->integer_width = MAX(p->integer_width, length);
}

/* ---- Words ---- */

static void write_number(const printer *p, const number_format *f, double v, text *out)
{
    char whole[WORD_ROOM], fraction[WORD_ROOM];
    const char *sign = signbit(v) && !isnan(v) ? "-" : f->plus ? "+" : "";
    if (!isfinite(v)) {
        int spaces = f->left + f->right + 1 - (int)strlen(sign) - 3;
        text_append(out, "%*s%s%s", MAX(spaces, 0), "", sign, isnan(v) ? "nan" : "inf");
    } else if (f->exponential) {
        decimal d = round_to(fabs(v), f->digits);
        int spaces = f->left - (int)strlen(sign) - 1;
        text_append(out, "%*s%s%c.%.*se%c%0*d", spaces, "", sign, d.digits[0], f->digits,
                    d.digits + 1, d.exponent < 0 ? '-' : '+', f->exponent,
                    d.exponent < 0 ? -d.exponent : d.exponent);
    } else {
        positional(p, fabs(v), whole, fraction);
        int spaces = f->left - (int)strlen(sign) - (int)strlen(whole);
        text_append(out, "%*s%s%s.%-*s", spaces, "", sign, whole, f->right, fraction);
    }
}

/* The j of an imaginary part comes before its padding spaces. */
static void write_imaginary(const printer *p, uint64_t index, text *out)
{
    write_number(p, &p->parts[1], real_of(p, index, 1), out);
    size_t end = out->length;
    while (out->buffer[end - 1] == ' ')
        end--;
    text_append(out, " ");
    memmove(out->buffer + end + 1, out->buffer + end, out->length - 1 - end);
    out->buffer[end] = 'j';
}

static void write_word(const printer *p, uint64_t index, text *out)
{
    if (p->dtype == RLXVK_BOOL)
        text_append(out, *element(p, index) ? p->shape->rank ? " True" : "True" : "False");
    else if (dtype_is_integer(p->dtype))
        text_append(out, "%*lld", p->integer_width, (long long)integer_of(p, index));
    else
        write_number(p, &p->parts[0], real_of(p, index, 0), out);
    if (p->dtype == RLXVK_C64)
        write_imaginary(p, index, out);
}

/* ---- Lines ---- */

/* Holds spaces back until something follows them in the line. */
static void put(printer *p, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (word[i] == ' ') {
            p->spaces++;
            continue;
        }
        for (; p->spaces; p->spaces--)
            text_output_bytes(&p->out, " ", 1);
        text_output_bytes(&p->out, &word[i], 1);
    }
}

static void new_lines(printer *p, uint32_t count, uint32_t indent)
{
    for (uint32_t i = 0; i < count; i++)
        text_output_bytes(&p->out, "\n", 1);
    p->spaces = indent;
}

/* Writes one word of a row of the innermost axis. If it does not fit, it goes to a new line. */
static void put_word(printer *p, const char *word, size_t length, uint32_t indent, bool more)
{
    uint64_t width = p->width > indent ? p->width - indent : 0; /* for closing brackets */
    if (p->line > indent && p->line + length > width) {
        new_lines(p, 1, indent);
        p->line = indent;
    }
    put(p, word, length);
    put(p, " ", more);
    p->line += length + more;
}

static void print_row(printer *p, uint64_t index, uint32_t indent)
{
    uint32_t axis = p->shape->rank - 1;
    int64_t length = p->shape->dims[axis];
    char word[2 * WORD_ROOM];
    p->line = indent;
    for (int64_t i = 0; i < length; i++) {
        text t = {.buffer = word, .size = sizeof word};
        if (is_cut(p, axis) && i == p->edge) {
            put_word(p, "...", 3, indent, true);
            i = length - p->edge;
        }
        write_word(p, index + (uint64_t)i, &t);
        put_word(p, word, t.length, indent, i + 1 < length);
    }
}

/* Writes an axis in brackets; lines after the first begin with `indent` spaces. */
static void print_axis(printer *p, uint32_t axis, uint64_t index)
{
    uint32_t left = p->shape->rank - axis, indent = axis + 1;
    put(p, "[", 1);
    if (left == 1) {
        print_row(p, index, indent);
    } else {
        for (int64_t i = 0, length = p->shape->dims[axis]; i < length; i++) {
            if (i)
                new_lines(p, left - 1, indent);
            if (is_cut(p, axis) && i == p->edge) {
                put(p, "...", 3);
                new_lines(p, left - 1, indent);
                i = length - p->edge;
            }
            print_axis(p, axis + 1, index + (uint64_t)(i * p->strides[axis]));
        }
    }
    put(p, "]", 1);
}

static void print(printer *p, uint64_t count)
{
    char word[2 * WORD_ROOM];
    text t = {.buffer = word, .size = sizeof word};
    int parts = p->dtype == RLXVK_C64 ? 2 : 1;
    if (count == 0) {
        put(p, "[]", 2);
        return;
    }
    shape_strides(p->shape, p->strides);
    if (dtype_is_integer(p->dtype))
        visit(p, 0, 0, measure_integer, NULL);
    else if (p->dtype != RLXVK_BOOL)
        for (int part = 0; part < parts; part++)
            find_format(p, part);
    if (p->shape->rank) {
        print_axis(p, 0, 0);
        return;
    }
    write_word(p, 0, &t);
    text_output_bytes(&p->out, word, t.length);
}

rlxvk_status rlxvk_values_text(const void *data, rlxvk_dtype dtype, rlxvk_shape shape,
                               const rlxvk_values_options *options, char *buffer, size_t size,
                               size_t *out_length)
{
    rlxvk_values_options own, *o = &own;
    uint64_t count;
    rlxvk_status status;
    TRY(status_require(out_length, "values_text", "out_length"));
    TRY(status_require_items(buffer, size, "values_text", "buffer"));
    TRY(sized_read(SIZED(rlxvk_values_options), options, o));
    if ((unsigned)dtype >= RLXVK_DTYPE_COUNT)
        return status_fail(RLXVK_E_DTYPE, "values_text: dtype %d is none of rlxvk_dtype",
                           (int)dtype);
    if (o->precision > MOST_PRECISION)
        return status_fail(RLXVK_E_ATTR, "values_text: precision %u; %d digits are the most",
                           o->precision, MOST_PRECISION);
    status = rlxvk_shape_elements(shape, &count);
    if (status != RLXVK_OK)
        return status_fail_within(status, "values_text");
    TRY(status_require_items(data, count, "values_text", "data"));
    printer p = {.data = data,
                 .dtype = dtype,
                 .shape = &shape,
                 .summary = count > (o->threshold ? o->threshold : 1000),
                 .edge = o->edge_items ? o->edge_items : 3,
                 .width = o->line_width ? o->line_width : 75,
                 .precision = o->precision ? (int)o->precision : 8,
                 .out = text_output_begin(buffer, size)};
    print(&p, count);
    *out_length = (size_t)p.out.length;
error:
    return status;
}
