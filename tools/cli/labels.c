/* See labels.h. */
#include "cli/labels.h"
#include "cli/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct labels {
    char *text; /* the file, with a terminator behind each line */
    VECTOR(const char *) names;
} labels;

static rlxvk_status read_labels(const char *path, labels *out)
{
    file_content file;
    rlxvk_status status;
    TRY(file_read(path, &file));
    out->text = memory_zeroed((size_t)file.length + 1, 1);
    if (!out->text)
        TRY(status_fail_memory("labels"));
    memcpy(out->text, file.data, (size_t)file.length);
    for (char *line = out->text, *end; *line; line = end) {
        char *stop = line + strcspn(line, "\r\n");
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        *stop = 0;
        if (!VECTOR_PUSH(&out->names, line))
            TRY(status_fail_memory("labels"));
    }
error:
    file_free(&file);
    return status;
}

/* ---- Scores ---- */

typedef struct scored {
    double score;
    size_t number; /* of the class */
} scored;

/* The best first; NaN is worst; of equals the first class. */
static int better(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score))
        return isnan(x->score) ? 1 : -1;
    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void softmax(double *values, size_t count)
{
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, values[i]);
    for (size_t i = 0; i < count; i++)
        sum += values[i] = exp(values[i] - most);
    for (size_t i = 0; i < count; i++)
        values[i] /= sum;
}

static bool are_scores(const double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (values[i] < 0 || values[i] > 1)
            return false;
    return true;
}

/* Appends the best of one item. */
static void rank_item(const labels *l, uint64_t top, size_t item, const double *values,
                      scored *room, run_result *r)
{
    for (size_t i = 0; i < l->names.count; i++)
        room[i] = (scored){values[i], i};
    qsort(room, l->names.count, sizeof *room, better);
    for (size_t i = 0; i < MIN(top, l->names.count); i++) {
        run_class *best = &r->best[r->best_count++];
        *best = (run_class){.item = item, .number = room[i].number, .score = room[i].score};
        snprintf(best->label, sizeof best->label, "%s", l->names.items[room[i].number]);
    }
}

/* ---- The output ---- */

static uint64_t batch_of(const array *a)
{
    return a->shape.rank > 1 ? (uint64_t)a->shape.dims[0] : 1;
}

static rlxvk_status find_output(const run_options *o, const run_result *r, size_t classes,
                                const run_output **out)
{
    const array *a = r->output_count ? &r->outputs[0].value : NULL;
    for (size_t i = 0; i < r->output_count; i++) {
        *out = &r->outputs[i];
        if (classes && (*out)->value.numel == batch_of(&(*out)->value) * classes)
            return RLXVK_OK;
    }
    return status_fail(RLXVK_E_SHAPE,
                       "'%s' has %zu labels, but no output has so many values an item; the first "
                       "output has %llu",
                       o->labels, classes,
                       a ? (unsigned long long)(a->numel / MAX(batch_of(a), 1)) : 0);
}

static rlxvk_status rank(const labels *l, const run_options *o, run_result *r)
{
    const run_output *output = NULL;
    size_t classes = l->names.count, batch;
    double *values = NULL;
    scored *room = NULL;
    rlxvk_status status;
    TRY(find_output(o, r, classes, &output));
    batch = (size_t)batch_of(&output->value);
    values = array_numbers(&output->value);
    room = memory_zeroed(classes, sizeof *room);
    r->best = memory_zeroed(batch * MIN((size_t)o->top, classes) + 1, sizeof *r->best);
    if (!values || !room || !r->best)
        TRY(status_fail_memory("labels"));
    snprintf(r->best_of, sizeof r->best_of, "%s", output->name);
    r->best_softmax = !are_scores(values, output->value.numel);
    for (size_t i = 0; i < batch; i++) {
        if (r->best_softmax)
            softmax(values + i * classes, classes);
        rank_item(l, o->top, i, values + i * classes, room, r);
    }
error:
    memory_free(values);
    memory_free(room);
    return status;
}

rlxvk_status labels_rank(const run_options *o, run_result *r)
{
    labels l = {0};
    rlxvk_status status;
    TRY(read_labels(o->labels, &l));
    TRY(rank(&l, o, r));
error:
    VECTOR_FREE(&l.names);
    memory_free(l.text);
    return status;
}
