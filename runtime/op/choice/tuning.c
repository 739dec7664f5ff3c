/* Reads points and finds the nearest one. Distances are between base-2 logarithms. */
#include "op/choice/tuning.h"
#include "op/choice/tuning_data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A point with an unknown kind or row is ignored. */
static rlxvk_status add_point(tuning *t, const tuning_entry *e)
{
    const kernel_kind *kind = choice_find_kind(e->kind, strlen(e->kind));
    if (!kind || strlen(e->tag) >= VARIANT_TAG)
        return RLXVK_OK;
    tuning_point p = {.row = choice_find_row(kind, e->row, strlen(e->row)),
                      .kind = (uint8_t)(kind - choice_kinds)};
    if (p.row == VARIANT_NONE && strcmp(e->row, TUNING_TABLE) != 0)
        return RLXVK_OK;
    memcpy(p.dims, e->dims, sizeof p.dims);
    strcpy(p.tag, e->tag);
    return VECTOR_PUSH(&t->points, p) ? RLXVK_OK : status_fail_memory("tuning points");
}

/* The widths keep every word in its array and every number in 32 bits. `rest` is text after the
 * microseconds; a line that has it is not a point. */
static rlxvk_status read_line(tuning *t, const char *line, size_t length)
{
    char copy[160], kind[32], tag[32], row[48], rest[2];
    tuning_entry e = {.kind = kind, .tag = tag, .row = row};
    if (length >= sizeof copy)
        return RLXVK_OK;
    memcpy(copy, line, length);
    copy[length] = 0;
    if (sscanf(copy, "%31s %31s %9u,%9u,%9u,%9u %47s %*[0-9.]%1s", kind, tag, &e.dims[0],
               &e.dims[1], &e.dims[2], &e.dims[3], row, rest) != 7)
        return RLXVK_OK;
    for (int i = 0; i < VARIANT_DIMS; i++)
        if (e.dims[i] > 999999999) /* nine characters with a minus sign, which %u accepts */
            return RLXVK_OK;
    return add_point(t, &e);
}

static rlxvk_status read_text(tuning *t, const char *text)
{
    rlxvk_status status = RLXVK_OK;
    if (strncmp(text, TUNING_HEADER, strlen(TUNING_HEADER)) != 0)
        return RLXVK_OK;
    for (const char *line = text + strlen(TUNING_HEADER); *line && status == RLXVK_OK;) {
        size_t length = strcspn(line, "\n");
        status = read_line(t, line, length);
        line += length + (line[length] != 0);
    }
    t->from_file = t->points.count;
    return status;
}

rlxvk_status tuning_create(const char *text, const char *device, tuning *out)
{
    tuning t = {0};
    rlxvk_status status = RLXVK_OK;
    if (text)
        TRY(read_text(&t, text));
    for (size_t i = 0; device && i < ARRAY_COUNT(tuning_devices); i++)
        if (strstr(device, tuning_devices[i].device))
            for (const tuning_entry *e = tuning_devices[i].entries; e->kind; e++)
                TRY(add_point(&t, e));
    *out = t;
    return RLXVK_OK;
error:
    tuning_destroy(&t);
    return status;
}

void tuning_destroy(tuning *t)
{
    VECTOR_FREE(&t->points);
    *t = (tuning){0};
}

/* The square of the distance. It is infinite if a dimension differs by more than a factor of two.
 */
static double distance(const tuning_point *p, const uint64_t *dims)
{
    double sum = 0;
    for (int i = 0; i < VARIANT_DIMS; i++) {
        double apart = log2((double)dims[i]) - log2((double)p->dims[i]);
        if (dims[i] == p->dims[i])
            continue;
        if (!(fabs(apart) <= 1)) /* also if one is 0 */
            return INFINITY;
        sum += apart * apart;
    }
    return sum;
}

/* If several points are equally near, the first one. */
static const tuning_point *nearest(const tuning_point *points, size_t count, const variant_query *q)
{
    const tuning_point *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        const tuning_point *p = &points[i];
        if (&choice_kinds[p->kind] != q->kind || strcmp(p->tag, q->tag) != 0)
            continue;
        double d = distance(p, q->dims);
        if (d < least) {
            least = d;
            best = p;
        }
    }
    return best;
}

/* The tuning file wins, even if its point is farther away, because it was measured on this device.
 */
size_t tuning_find(const tuning *t, const variant_query *q)
{
    const tuning_point *p = nearest(t->points.items, t->from_file, q);
    if (!p && t->points.count > t->from_file)
        p = nearest(t->points.items + t->from_file, t->points.count - t->from_file, q);
    return p ? p->row : VARIANT_NONE;
}

void tuning_write(const variant_query *q, const char *row, double microseconds, text *out)
{
    text_append(out, "%s %s ", q->kind->name, q->tag);
    for (int i = 0; i < VARIANT_DIMS; i++)
        text_append(out, "%s%llu", i ? "," : "", (unsigned long long)q->dims[i]);
    text_append(out, " %s %.3f\n", row, microseconds);
}
