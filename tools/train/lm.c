/*
 * rlxvk train lm: trains a language model over bytes, with llama's architecture, on the text of
 * files, and writes it as a GGUF file. Every window of text begins with bos, because prompts do,
 * too. From time to time a second executable, which shares the parameters, is tested with text that
 * was held back.
 */
#include "cli/clock.h"
#include "base/new_file.h"
#include "cli/output.h"
#include "train/job.h"
#include "train/lm_export.h"
#include "train/lm_text.h"

#define STEPS   3000
#define TESTS   10  /* during training */
#define WINDOWS 256 /* most windows of held-back text in one test */

typedef struct lm {
    const train_options *options;
    lm_shape shape;
    lm_text text;
    trainer trainer;
    rlxvk_graph *test_graph;
    rlxvk_executable *test;
    float *x, *y;
    double held_loss; /* of the last test */
} lm;

/* ---- The net ---- */

/* Adds all parameters. They belong to the trainer; if `t` is NULL, they are params of `g` with the
 * same names. Returns NULL if memory runs out. */
static rlxvk_tensor *add_parameters(const lm_shape *s, trainer *t, rlxvk_graph *g)
{
    uint32_t count = lm_tensor_count(s);
    rlxvk_tensor *p = memory_zeroed(count, sizeof *p);
    for (uint32_t i = 0; p && i < count; i++) {
        lm_tensor w = lm_tensor_at(s, i);
        p[i] = t ? trainer_param(t, w.name, lm_tensor_shape(&w), w.deviation, w.base)
                 : rlxvk_param(g, w.name, RLXVK_F32, lm_tensor_shape(&w));
    }
    return p;
}

static rlxvk_status build(lm *m, trainer *t, rlxvk_graph *g, rlxvk_tensor *out_loss)
{
    int64_t batch = (int64_t)m->options->batch, count = batch * m->shape.context;
    rlxvk_tensor *p = add_parameters(&m->shape, t, g);
    if (!p)
        return status_fail_memory("parameters");
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(count));
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(count));
    *out_loss = lm_loss(g, &m->shape, p, x, y, batch, t && m->options->recompute);
    memory_free(p);
    return RLXVK_OK;
}

static rlxvk_status build_all(lm *m, rlxvk_context *context)
{
    rlxvk_compile_options options = {.precision = m->options->precision};
    rlxvk_tensor loss;
    rlxvk_status status;
    TRY(build(m, &m->trainer, m->trainer.graph, &loss));
    TRY(trainer_compile(&m->trainer, context, loss, &options));
    TRY(rlxvk_graph_create(&m->test_graph));
    TRY(build(m, NULL, m->test_graph, &loss));
    rlxvk_graph_output(m->test_graph, loss);
    options.share_with = m->trainer.executable;
    TRY(rlxvk_compile(context, m->test_graph, &options, &m->test));
error:
    return status;
}

/* ---- Runs ---- */

static void set_inputs(const lm *m, rlxvk_run_input inputs[2])
{
    uint64_t count = m->options->batch * (uint64_t)m->shape.context;
    inputs[0] = (rlxvk_run_input){.name = "x", .data = m->x, .length = count};
    inputs[1] = (rlxvk_run_input){.name = "y", .data = m->y, .length = count};
}

/* The mean loss of windows that are spread evenly over the held-back text, as many as fill whole
 * batches. */
static rlxvk_status test_held(lm *m)
{
    const byte_text *held = &m->text.held;
    uint64_t context = (uint64_t)m->shape.context, batch = m->options->batch;
    uint64_t batches = MAX(MIN(held->length / context, WINDOWS) / batch, 1);
    rlxvk_run_input inputs[2];
    float loss;
    double sum = 0;
    rlxvk_run_output output = {.index = 0, .buffer = &loss, .length = 1};
    rlxvk_status status = RLXVK_OK;
    set_inputs(m, inputs);
    for (uint64_t i = 0; i < batches; i++) {
        for (uint64_t row = 0; row < batch; row++) {
            uint64_t at = (held->length - context) * (i * batch + row) / (batches * batch);
            lm_text_take(held, at, context, row, m->x, m->y);
        }
        TRY(rlxvk_run(m->test, inputs, 2, &output, 1));
        sum += loss;
    }
    m->held_loss = sum / (double)batches;
error:
    return status;
}

static void print_test(const lm *m)
{
    unsigned long long step = m->trainer.step;
    print_progress(NULL);
    if (m->options->json)
        printf("{\"step\":%llu,\"held_loss\":%.6g}\n", step, m->held_loss);
    else
        printf("step %llu: %.4f nats a byte on text held back\n", step, m->held_loss);
    fflush(stdout);
}

static rlxvk_status learn_step(lm *m)
{
    const byte_text *text = &m->text.learned;
    uint64_t context = (uint64_t)m->shape.context;
    rlxvk_run_input inputs[2];
    set_inputs(m, inputs);
    for (uint64_t row = 0; row < m->options->batch; row++)
        lm_text_take(text, trainer_below(&m->trainer, text->length - context), context, row, m->x,
                     m->y);
    return trainer_step(&m->trainer, inputs, 2);
}

static rlxvk_status learn(lm *m)
{
    trainer *t = &m->trainer;
    uint64_t bytes = m->options->batch * (uint64_t)m->shape.context, learned = 0;
    uint64_t every = MAX(t->steps / TESTS, 1);
    double seconds = 0;
    rlxvk_status status = RLXVK_OK;
    while (t->step < t->steps && !train_stopped()) {
        double start = clock_seconds();
        TRY(learn_step(m));
        seconds += clock_seconds() - start;
        learned += bytes;
        train_report(m->options, t, "bytes", (double)learned, seconds);
        if (t->step % every == 0 && t->step < t->steps) {
            TRY(test_held(m));
            print_test(m);
        }
    }
    TRY(test_held(m));
    print_progress(NULL);
    if (m->options->json)
        printf("{\"steps\":%llu,\"held_loss\":%.6g,\"seconds\":%.2f,\"bytes_per_second\":%.1f}\n",
               (unsigned long long)t->step, m->held_loss, seconds,
               (double)learned / MAX(seconds, 1e-9));
    else
        printf("%.4f nats a byte on text held back after %llu steps, %.1f s (%.0f bytes a "
               "second)\n",
               m->held_loss, (unsigned long long)t->step, seconds,
               (double)learned / MAX(seconds, 1e-9));
error:
    return status;
}

static rlxvk_status keep(lm *m)
{
    const train_options *o = m->options;
    rlxvk_status status = RLXVK_OK;
    if (o->save)
        TRY(trainer_save(&m->trainer, o->save));
    if (o->out)
        TRY(lm_export(m->trainer.executable, &m->shape, !o->exact, o->out));
    if (o->curve)
        TRY(trainer_draw(&m->trainer, "language model: loss of each step, nats a byte", o->curve));
error:
    return status;
}

/* ---- The job ---- */

static rlxvk_status check_shape(const train_options *o, lm_shape *out)
{
    const lm_shape s = {(int64_t)o->width, (int64_t)o->ffn,      (int64_t)o->blocks,
                        (int64_t)o->heads, (int64_t)o->kv_heads, (int64_t)o->context};
    if (s.width % s.heads || s.width / s.heads % 2 || s.heads % s.kv_heads)
        return status_fail(RLXVK_E_ATTR,
                           "--width %lld, --heads %lld, --kv-heads %lld: heads must divide the "
                           "width evenly into parts of even size, and be a multiple of kv-heads",
                           (long long)s.width, (long long)s.heads, (long long)s.kv_heads);
    *out = s;
    return RLXVK_OK;
}

static void lm_destroy(lm *m)
{
    lm_text_destroy(&m->text);
    memory_free(m->x);
    memory_free(m->y);
    rlxvk_executable_destroy(m->test);
    rlxvk_graph_destroy(m->test_graph);
    trainer_destroy(&m->trainer);
}

rlxvk_status train_lm(const train_options *o, rlxvk_context *context)
{
    lm m = {.options = o};
    rlxvk_status status;
    TRY(check_shape(o, &m.shape));
    if (o->text_count == 0)
        TRY(status_fail(RLXVK_E_ATTR, "no text to learn from; name files with --text"));
    TRY(lm_text_read(o->texts, o->text_count, o->context, &m.text));
    size_t count = (size_t)(o->batch * o->context);
    m.x = memory_allocate(count * sizeof *m.x);
    m.y = memory_allocate(count * sizeof *m.y);
    TRY(m.x && m.y ? RLXVK_OK : status_fail_memory("windows of text"));
    TRY(trainer_create(&m.trainer, o->seed));
    m.trainer.options.learning_rate = o->rate;
    m.trainer.options.weight_decay = 0.1f;
    m.trainer.steps = o->steps || o->resume ? o->steps : STEPS;
    TRY(build_all(&m, context));
    if (o->resume)
        TRY(trainer_load(&m.trainer, o->resume));
    TRY(learn(&m));
    TRY(keep(&m));
error:
    lm_destroy(&m);
    return status;
}
