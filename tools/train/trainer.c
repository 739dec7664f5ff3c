/* See trainer.h. */
#include "train/trainer.h"
#include "cli/file.h"
#include "base/new_file.h"
#include "base/numeric.h"
#include "graph/graph.h"

#include <math.h>
#include <string.h>

#define WARM_UP  0.05 /* share of the steps in which the rate rises */
#define LAST     0.05 /* the last rate, relative to the highest */
#define MAGIC    "rlxvk checkpoint 2\n"
#define AVERAGES 2

/* ---- Random numbers: splitmix64 ---- */

uint64_t trainer_random(trainer *t)
{
    uint64_t z = t->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t trainer_below(trainer *t, uint64_t n)
{
    return (uint64_t)((double)(trainer_random(t) >> 11) * 0x1p-53 * (double)n);
}

/* The Box-Muller method. */
static double normal(trainer *t)
{
    double u = ((double)(trainer_random(t) >> 11) + 1) * 0x1p-53;
    double v = (double)(trainer_random(t) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * numeric_cos(2 * acos(-1) * v);
}

/* ---- Life ---- */

rlxvk_status trainer_create(trainer *t, uint64_t seed)
{
    *t = (trainer){.random = seed, .clip = 1};
    t->options = (rlxvk_adamw_options){.learning_rate = 1e-3f,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.99f,
                                       .eps = 1e-8f,
                                       .weight_decay = 0.01f,
                                       .step = 1};
    return rlxvk_graph_create(&t->graph);
}

void trainer_destroy(trainer *t)
{
    for (size_t i = 0; i < t->parameters.count; i++)
        memory_free(t->parameters.items[i].first);
    VECTOR_FREE(&t->parameters);
    VECTOR_FREE(&t->losses);
    rlxvk_executable_destroy(t->executable);
    rlxvk_graph_destroy(t->graph);
    *t = (trainer){0};
}

/* ---- Building ---- */

rlxvk_tensor trainer_param(trainer *t, const char *name, rlxvk_shape shape, double deviation,
                           double base)
{
    trainer_parameter p = {.length = 1, .decays = shape.rank > 1};
    for (uint32_t i = 0; i < shape.rank; i++)
        p.length *= (uint64_t)shape.dims[i];
    snprintf(p.name, sizeof p.name, "%s", name);
    p.tensor = rlxvk_param(t->graph, name, RLXVK_F32, shape);
    p.first = memory_allocate(p.length * sizeof *p.first);
    if (!p.first || !VECTOR_PUSH(&t->parameters, p)) {
        memory_free(p.first);
        (void)graph_fail(t->graph, status_fail_memory(name));
        return RLXVK_NONE;
    }
    for (uint64_t i = 0; i < p.length; i++)
        p.first[i] = (float)(base + (deviation ? deviation * normal(t) : 0));
    return p.tensor;
}

/* Writes the name of an average of the parameter: "first.w" or "second.w". */
static const char *average_name(const trainer_parameter *p, int index,
                                char buffer[TRAINER_NAME + 8])
{
    snprintf(buffer, TRAINER_NAME + 8, "%s.%s", index ? "second" : "first", p->name);
    return buffer;
}

/* Parameters get their first values. Averages begin as zeros. */
static rlxvk_status set_first_values(trainer *t)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < t->parameters.count; i++) {
        const trainer_parameter *p = &t->parameters.items[i];
        char name[TRAINER_NAME + 8];
        float *zeros = memory_zeroed(p->length, sizeof *zeros);
        TRY(zeros ? RLXVK_OK : status_fail_memory("averages"));
        status = rlxvk_set_param(t->executable, p->name, p->first, p->length);
        for (int k = 0; k < AVERAGES && status == RLXVK_OK; k++)
            status = rlxvk_set_param(t->executable, average_name(p, k, name), zeros, p->length);
        memory_free(zeros);
        TRY(status);
    }
error:
    return status;
}

static void add_steps(trainer *t, const rlxvk_tensor *gradients)
{
    rlxvk_graph *g = t->graph;
    rlxvk_optimizer_data data = {.schedule = rlxvk_input(g, "schedule", RLXVK_F32, RLXVK_SHAPE(3)),
                                 .gradient_scale =
                                     rlxvk_gradient_clip(g, gradients, t->parameters.count,
                                                         t->clip)};
    for (size_t i = 0; i < t->parameters.count; i++) {
        const trainer_parameter *p = &t->parameters.items[i];
        rlxvk_adamw_options options = t->options;
        rlxvk_tensor averages[AVERAGES];
        char name[TRAINER_NAME + 8];
        for (int k = 0; k < AVERAGES; k++)
            averages[k] = rlxvk_param(g, average_name(p, k, name), RLXVK_F32,
                                      rlxvk_tensor_shape(g, p->tensor));
        options.weight_decay = p->decays ? t->options.weight_decay : 0;
        rlxvk_adamw(g, p->tensor, gradients[i], averages[0], averages[1], &options, &data, NULL);
    }
}

rlxvk_status trainer_compile(trainer *t, rlxvk_context *context, rlxvk_tensor loss,
                             const rlxvk_compile_options *options)
{
    rlxvk_status status;
    size_t count = t->parameters.count;
    rlxvk_tensor *tensors = memory_zeroed(2 * count + 1, sizeof *tensors);
    TRY(tensors ? RLXVK_OK : status_fail_memory("gradients"));
    for (size_t i = 0; i < count; i++)
        tensors[i] = t->parameters.items[i].tensor;
    rlxvk_grad(t->graph, loss, RLXVK_NONE, tensors, count, tensors + count);
    rlxvk_graph_output(t->graph, loss);
    add_steps(t, tensors + count);
    TRY(rlxvk_compile(context, t->graph, options, &t->executable));
    TRY(set_first_values(t));
error:
    memory_free(tensors);
    return status;
}

/* ---- Steps ---- */

/* The rate rises in a line, then falls in half a cosine. */
static double rate_of(const trainer *t)
{
    double at = (double)t->step, steps = fmax((double)t->steps, 1), warm = fmax(WARM_UP * steps, 1);
    if (at < warm)
        return t->options.learning_rate * (at + 1) / warm;
    double done = fmin((at - warm) / fmax(steps - warm, 1), 1);
    return t->options.learning_rate *
           (LAST + (1 - LAST) * 0.5 * (1 + numeric_cos(acos(-1) * done)));
}

rlxvk_status trainer_step(trainer *t, const rlxvk_run_input *inputs, size_t count)
{
    enum { MOST = 8 };
    rlxvk_run_input all[MOST];
    double next = (double)t->step + 1;
    float loss, schedule[] = {(float)rate_of(t), (float)(1 - pow(t->options.beta1, next)),
                              (float)(1 - pow(t->options.beta2, next))};
    rlxvk_run_output output = {.index = 0, .buffer = &loss, .length = 1};
    rlxvk_status status;
    for (size_t i = 0; i < MIN(count, MOST - 1); i++)
        all[i] = inputs[i];
    all[MIN(count, MOST - 1)] =
        (rlxvk_run_input){.name = "schedule", .data = schedule, .length = 3};
    TRY(rlxvk_run(t->executable, all, MIN(count, MOST - 1) + 1, &output, 1));
    if (!isfinite(loss))
        TRY(status_fail(RLXVK_E_RANGE, "the loss of step %llu is %g; try a lower learning rate",
                        (unsigned long long)t->step, (double)loss));
    TRY(VECTOR_PUSH(&t->losses, loss) ? RLXVK_OK : status_fail_memory("losses"));
    t->step++;
error:
    return status;
}

/* ---- Checkpoints: a line, a head, all parameters with their averages in order, all losses, and a
 * checksum of all that stands before it ---- */

typedef struct checkpoint_head {
    uint64_t step, steps, random, values, losses;
} checkpoint_head;

#define START (sizeof MAGIC - 1 + sizeof(checkpoint_head)) /* offset of the numbers */

static uint64_t value_count(const trainer *t)
{
    uint64_t count = 0;
    for (size_t i = 0; i < t->parameters.count; i++)
        count += (1 + AVERAGES) * t->parameters.items[i].length;
    return count;
}

/* Name of a stored value: the parameter (index 0), or one of its averages. */
static const char *value_name(const trainer_parameter *p, int index, char buffer[TRAINER_NAME + 8])
{
    return index ? average_name(p, index - 1, buffer) : p->name;
}

static void write_summed(FILE *file, const void *bytes, uint64_t size, uint64_t *checksum)
{
    *checksum = base_hash(*checksum, bytes, size);
    fwrite(bytes, 1, size, file);
}

static rlxvk_status write_values(trainer *t, FILE *file, uint64_t *checksum)
{
    rlxvk_status status = RLXVK_OK;
    char name[TRAINER_NAME + 8];
    for (size_t i = 0; i < t->parameters.count; i++) {
        trainer_parameter *p = &t->parameters.items[i]; /* `first` is no longer needed, so it serves
                                                           as a buffer */
        for (int k = 0; k <= AVERAGES; k++) {
            TRY(rlxvk_read_param(t->executable, value_name(p, k, name), p->first, p->length));
            write_summed(file, p->first, p->length * sizeof *p->first, checksum);
        }
    }
error:
    return status;
}

static rlxvk_status write_checkpoint(trainer *t, FILE *file)
{
    checkpoint_head head = {t->step, t->steps, t->random, value_count(t), t->losses.count};
    uint64_t checksum = BASE_HASH_START;
    rlxvk_status status;
    write_summed(file, MAGIC, sizeof MAGIC - 1, &checksum);
    write_summed(file, &head, sizeof head, &checksum);
    TRY(write_values(t, file, &checksum));
    write_summed(file, t->losses.items, t->losses.count * sizeof *t->losses.items, &checksum);
    fwrite(&checksum, sizeof checksum, 1, file);
error:
    return status;
}

rlxvk_status trainer_save(trainer *t, const char *path)
{
    new_file file = {0};
    rlxvk_status status;
    TRY(new_file_open(path, &file));
    TRY(write_checkpoint(t, file.stream));
    return new_file_close(&file);
error:
    if (file.stream)
        new_file_discard(&file);
    return status;
}

static rlxvk_status take_values(trainer *t, const float *values)
{
    rlxvk_status status = RLXVK_OK;
    char name[TRAINER_NAME + 8];
    for (size_t i = 0; i < t->parameters.count; i++) {
        const trainer_parameter *p = &t->parameters.items[i];
        for (int k = 0; k <= AVERAGES; k++, values += p->length)
            TRY(rlxvk_set_param(t->executable, value_name(p, k, name), values, p->length));
    }
error:
    return status;
}

/* Checks that the file is complete and undamaged. */
static rlxvk_status check_whole(const char *path, const file_content *content)
{
    uint64_t written, checksum;
    if (content->length < START + sizeof written ||
        memcmp(content->data, MAGIC, sizeof MAGIC - 1) != 0)
        return status_fail(RLXVK_E_FILE,
                           "%s is no checkpoint of this program, or one of another version of it",
                           path);
    size_t end = content->length - sizeof written;
    checksum = base_hash(BASE_HASH_START, content->data, end);
    memcpy(&written, content->data + end, sizeof written);
    if (checksum != written)
        return status_fail(RLXVK_E_FILE,
                           "%s is damaged: its checksum is %016llx, and %016llx was written; take "
                           "an older checkpoint",
                           path, (unsigned long long)checksum, (unsigned long long)written);
    return RLXVK_OK;
}

static rlxvk_status check_head(const trainer *t, const char *path, const checkpoint_head *h,
                               uint64_t words)
{
    if (h->values != value_count(t) || h->losses != h->step || h->losses > words ||
        words - h->losses != h->values)
        return status_fail(RLXVK_E_LENGTH,
                           "%s has %llu numbers; this net has %llu, and one loss a step: resume "
                           "with the options it was made with",
                           path, (unsigned long long)words, (unsigned long long)value_count(t));
    if (h->steps < 1 || h->steps > TRAINER_MOST_STEPS || h->step > h->steps)
        return status_fail(RLXVK_E_RANGE, "%s has done %llu of %llu steps; at most %llu can be",
                           path, (unsigned long long)h->step, (unsigned long long)h->steps,
                           (unsigned long long)TRAINER_MOST_STEPS);
    if (t->steps && t->steps < h->step)
        return status_fail(RLXVK_E_RANGE,
                           "%s has done %llu steps; it cannot end after %llu: ask for more", path,
                           (unsigned long long)h->step, (unsigned long long)t->steps);
    return RLXVK_OK;
}

static rlxvk_status check_numbers(const char *path, const float *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return status_fail(RLXVK_E_RANGE, "%s: number %llu of %llu is %g; take an older one",
                               path, (unsigned long long)i, (unsigned long long)count,
                               (double)numbers[i]);
    return RLXVK_OK;
}

rlxvk_status trainer_load(trainer *t, const char *path)
{
    file_content content = {0};
    checkpoint_head head = {0};
    float *values = NULL;
    rlxvk_status status;
    TRY(file_read(path, &content));
    TRY(check_whole(path, &content));
    memcpy(&head, content.data + sizeof MAGIC - 1, sizeof head);
    uint64_t words = (content.length - START - sizeof(uint64_t)) / sizeof(float);
    TRY(check_head(t, path, &head, words));
    values = memory_allocate(MAX(words, 1) * sizeof *values);
    TRY(values ? RLXVK_OK : status_fail_memory("checkpoint"));
    memcpy(values, content.data + START, words * sizeof *values); /* copied, because it must be
                                                                     aligned */
    TRY(check_numbers(path, values, words));
    TRY(take_values(t, values));
    t->losses.count = 0;
    for (uint64_t i = 0; i < head.losses; i++)
        TRY(VECTOR_PUSH(&t->losses, values[head.values + i]) ? RLXVK_OK
                                                             : status_fail_memory("losses"));
    t->step = head.step;
    t->steps = t->steps ? t->steps : head.steps;
    t->random = head.random;
error:
    memory_free(values);
    file_free(&content);
    return status;
}

/* ---- The curve ---- */

#define WIDTH  720
#define HEIGHT 360
#define MARGIN 48

static void draw_points(const trainer *t, double largest, bool line, FILE *file)
{
    double smooth = t->losses.count ? t->losses.items[0] : 0;
    size_t every = t->losses.count / 2000 + 1;
    for (size_t i = 0; i < t->losses.count; i++) {
        double x = MARGIN + (double)i * (WIDTH - 2 * MARGIN) / fmax((double)t->losses.count - 1, 1);
        smooth += 0.05 * (t->losses.items[i] - smooth);
        double value = line ? smooth : t->losses.items[i];
        double y = HEIGHT - MARGIN - value * (HEIGHT - 2 * MARGIN) / largest;
        if (i % every)
            continue;
        if (line)
            fprintf(file, "%.1f,%.1f ", x, y);
        else
            fprintf(file, "<circle cx='%.1f' cy='%.1f' r='1'/>\n", x, y);
    }
}

rlxvk_status trainer_draw(const trainer *t, const char *title, const char *path)
{
    double largest = 1e-6;
    new_file file = {0};
    rlxvk_status status = new_file_open(path, &file);
    if (status != RLXVK_OK)
        return status;
    for (size_t i = 0; i < t->losses.count; i++)
        largest = fmax(largest, t->losses.items[i]);
    fprintf(file.stream,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
            "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='24'>%s</text>\n<g stroke='gray'><path d='M%d %dV%dH%d' "
            "fill='none'/></g>\n<text x='8' y='%d'>%.3g</text><text x='8' y='%d'>0</text>\n"
            "<text x='%d' y='%d' text-anchor='end'>%zu steps</text>\n<g fill='lightsteelblue'>\n",
            WIDTH, HEIGHT, MARGIN, title, MARGIN, MARGIN, HEIGHT - MARGIN, WIDTH - MARGIN,
            MARGIN + 4, largest, HEIGHT - MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN + 20,
            t->losses.count);
    draw_points(t, largest, false, file.stream);
    fprintf(file.stream, "</g>\n<polyline fill='none' stroke='steelblue' points='");
    draw_points(t, largest, true, file.stream);
    fprintf(file.stream, "'/>\n</svg>\n");
    return new_file_close(&file);
}
