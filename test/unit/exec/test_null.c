/*
 * Calls every public function on a device: once for each pointer, with NULL for it, and once for
 * each tensor, with RLXVK_NONE and with a tensor of another graph. All other arguments are valid.
 *
 * Nothing may crash. If the contract does not allow NULL for a pointer, the call fails with E_NULL.
 * A tensor of another graph gives E_DANGLING. The message has the call's name, and the executable
 * still runs afterwards. null_calls.awk writes the calls from the headers. With the argument
 * "table" the test prints them.
 */
#include "op/op.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_train.h>
#include <rlxvk_quant.h>
#include <rlxvk_symbols.h>
#include <rlxvk_files.h>
#include <rlxvk_inspect.h>
#include <rlxvk_language.h>
#include <rlxvk_model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "unit/model/golden_numbers.h"
#include "unit/model/chat_model.h"

#define ROOM 1024

/* Holds the valid arguments (stand-ins) and their objects. */
typedef struct stand {
    rlxvk_graph *graph, *other, *graphs[6];
    rlxvk_executable *executables[4];
    rlxvk_context *context;
    rlxvk_status status; /* returned by the call, or its text */
    const char *text;
    uint32_t leaves;
    rlxvk_tensor results[2];
    float floats[ROOM], extra[ROOM];
    uint8_t bytes[4 * ROOM];
    uint64_t words[ROOM];
    rlxvk_device_info devices[1];
    rlxvk_step_time steps[1];
    rlxvk_tensor_info infos[1];
    const char *names[1];
    size_t count;
    double microseconds;
    rlxvk_ticket ticket;
    rlxvk_run_input run_input;
    rlxvk_run_output run_output;
    rlxvk_attention_block block;
    rlxvk_transformer_layer layer;
    char path[64]; /* of a file; "": not written yet */
    rlxvk_model *models[2];
    rlxvk_model_info model_info;
    onnx_message model_bytes;
    rlxvk_tokenizer *tokenizer;
    rlxvk_language *language;
} stand;

typedef enum null_kind { GIVES_STATUS, BUILDS, GIVES_VALUE } null_kind;
typedef enum null_what { NOTHING_LEFT_OUT, NULL_POINTER, NO_TENSOR, FOREIGN_TENSOR } null_what;

typedef struct null_call {
    const char *function, *argument;
    null_what what;
    null_kind kind;
    bool optional;
    int variant;
    void (*call)(stand *s, int variant);
} null_call;

/* ---- Valid arguments ---- */

static rlxvk_tensor leaf(stand *s, rlxvk_graph *g, rlxvk_dtype dtype, rlxvk_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "leaf%u", s->leaves++);
    return rlxvk_input(g, name, dtype, shape);
}

#define LEAF(dtype, ...) leaf(s, s->graph, RLXVK_##dtype, RLXVK_SHAPE(__VA_ARGS__))
#define T(...)           LEAF(F32, __VA_ARGS__)

static rlxvk_tensor foreign(stand *s)
{
    return leaf(s, s->other, RLXVK_F32, RLXVK_SHAPE(4, 4));
}

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* y = x w: input x [1, 2], param w [2, 2]. Made once and then reused. */
static rlxvk_graph *product_of(stand *s)
{
    if (s->graphs[1])
        return s->graphs[1];
    rlxvk_graph *g = s->graphs[1] = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 2));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, w));
    return g;
}

/* A body with one input and one output [4, 4]. */
static rlxvk_graph *body_of(stand *s)
{
    if (s->graphs[2])
        return s->graphs[2];
    rlxvk_graph *g = s->graphs[2] = new_graph();
    rlxvk_graph_output(g, rlxvk_neg(g, leaf(s, g, RLXVK_F32, RLXVK_SHAPE(4, 4))));
    return g;
}

/* A gradient function for body_of. */
static rlxvk_graph *vjp_of(stand *s)
{
    if (s->graphs[4])
        return s->graphs[4];
    rlxvk_graph *g = s->graphs[4] = new_graph();
    for (int i = 0; i < 2; i++)
        leaf(s, g, RLXVK_F32, RLXVK_SHAPE(4, 4));
    rlxvk_graph_output(g, rlxvk_neg(g, leaf(s, g, RLXVK_F32, RLXVK_SHAPE(4, 4))));
    return g;
}

static rlxvk_executable *compiled_as(stand *s, rlxvk_toggle profile)
{
    rlxvk_compile_options options = {.profile = profile};
    const float w[4] = {1, 2, 3, 4};
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, product_of(s), &options, &e));
    expect_ok(rlxvk_set_param(e, "w", w, 4));
    expect_ok(rlxvk_run(e, &s->run_input, 1, NULL, 0));
    return e;
}

static rlxvk_executable *compiled(stand *s)
{
    return compiled_as(s, RLXVK_OFF);
}

/* Made once and then reused. */
static rlxvk_executable *executable_of(stand *s)
{
    if (!s->executables[0])
        s->executables[0] = compiled(s);
    return s->executables[0];
}

static rlxvk_executable *profiled(stand *s)
{
    return s->executables[2] = compiled_as(s, RLXVK_ON);
}

/* Compiled from a graph with a symbol. */
static rlxvk_executable *symbolic(stand *s)
{
    rlxvk_graph *g = s->graphs[5] = new_graph();
    rlxvk_graph_output(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH))));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &s->executables[3]));
    return s->executables[3];
}

static rlxvk_ticket submitted(stand *s)
{
    rlxvk_ticket ticket;
    expect_ok(rlxvk_submit(executable_of(s), &s->run_input, 1, NULL, 0, &ticket));
    return ticket;
}

static rlxvk_executable *bound(stand *s)
{
    expect_ok(rlxvk_bind_handle(executable_of(s), "x", s->floats, 2));
    return executable_of(s);
}

static rlxvk_executable *fed(stand *s)
{
    expect_ok(rlxvk_set_handle_feed(executable_of(s), "x", 0));
    return executable_of(s);
}

static rlxvk_executable *row_fed(stand *s)
{
    expect_ok(rlxvk_register_row_feed(executable_of(s), "x", 0));
    return executable_of(s);
}

static const char *file_of(stand *s)
{
    if (!*s->path)
        snprintf(s->path, sizeof s->path, "/tmp/rlxvk-null-%ld.npz", (long)getpid());
    return s->path;
}

static const char *saved(stand *s)
{
    expect_ok(rlxvk_save_params(executable_of(s), file_of(s), NULL));
    return s->path;
}

/* A model file: y = -x. */
static const void *model_bytes(stand *s)
{
    onnx_message graph = {0};
    if (!s->model_bytes.bytes) {
        onnx_write_op(&graph, "Neg", ONNX_NAMES("x"), ONNX_NAMES("y"));
        onnx_write_value(&graph, 11, "x", 1, "2");
        onnx_write_value(&graph, 12, "y", 1, "2");
        s->model_bytes = onnx_write_model(&graph, 13);
    }
    return s->model_bytes.bytes;
}

static size_t model_size(stand *s)
{
    (void)model_bytes(s);
    return s->model_bytes.size;
}

static rlxvk_model *model_of(stand *s)
{
    if (!s->models[0])
        expect_ok(rlxvk_model_open_bytes(model_bytes(s), model_size(s), NULL, &s->models[0]));
    return s->models[0];
}

static rlxvk_model *new_model(stand *s)
{
    rlxvk_model *m = NULL;
    expect_ok(rlxvk_model_open_bytes(model_bytes(s), model_size(s), NULL, &m));
    return m;
}

/* A language model, its tokenizer and its language: one for all calls, because they take long to
 * make. No call changes them but by tokens, for which there is room. */
#define LANGUAGE_MODEL "build/test/null_chat.gguf"
static rlxvk_model *shared_model;
static rlxvk_tokenizer *shared_tokenizer;
static rlxvk_language *shared_language;

static rlxvk_model *language_model(stand *s)
{
    (void)s;
    return shared_model;
}

static rlxvk_tokenizer *tokenizer_of(stand *s)
{
    (void)s;
    return shared_tokenizer;
}

static rlxvk_language *language_of(stand *s)
{
    (void)s;
    expect_ok(rlxvk_language_rewind(shared_language, 0));
    return shared_language;
}

static rlxvk_tokenizer *new_tokenizer(stand *s)
{
    rlxvk_tokenizer *t = NULL;
    expect_ok(rlxvk_tokenizer_open(language_model(s), NULL, &t));
    return t;
}

static rlxvk_language *new_language(stand *s)
{
    const rlxvk_language_options few = {.capacity = 32};
    rlxvk_language *l = NULL;
    expect_ok(rlxvk_language_create(tokenizer_of(s), shared_context, &few, &l));
    return l;
}

static int open_all(void **state)
{
    char *template = read_text("test/data/chat/chatml.jinja");
    if (open_shared_context(state) != 0)
        return -1;
    chat_model_write(LANGUAGE_MODEL, template);
    memory_free(template);
    expect_ok(rlxvk_model_open(LANGUAGE_MODEL, NULL, &shared_model));
    shared_tokenizer = new_tokenizer(NULL);
    shared_language = new_language(NULL);
    return 0;
}

static int close_all(void **state)
{
    rlxvk_language_destroy(shared_language);
    rlxvk_tokenizer_destroy(shared_tokenizer);
    rlxvk_model_destroy(shared_model);
    return close_shared_context(state);
}

static const char *model_file(stand *s)
{
    FILE *file;
    snprintf(s->path, sizeof s->path, "/tmp/rlxvk-null-%ld.onnx", (long)getpid());
    file = fopen(s->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model_bytes(s), 1, model_size(s), file), model_size(s));
    fclose(file);
    return s->path;
}

static bool infer_same(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count;
    (void)attributes;
    (void)size;
    (void)out_dtype;
    *out_shape = inputs[0];
    return true;
}

static int copy_same(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                     size_t size, const rlxvk_shape *shape, float *out)
{
    (void)count;
    (void)attributes;
    (void)size;
    memcpy(out, inputs[0].values, shape_numel(shape) * sizeof *out);
    return 0;
}

static const rlxvk_custom_op identity_op = {.name = "null_identity",
                                            .input_count = 1,
                                            .infer = infer_same,
                                            .host = copy_same};

static const char *registered(void)
{
    static bool done;
    if (!done)
        expect_ok(rlxvk_custom_register(&identity_op));
    done = true;
    return identity_op.name;
}

static const rlxvk_attention_block *attention_block(stand *s)
{
    s->block = (rlxvk_attention_block){.hidden = T(1, 4, 4),
                                       .qkv_w = T(4, 12),
                                       .out_w = T(4, 4),
                                       .mask = T(4),
                                       .num_heads = 1,
                                       .head_dim = 4};
    return &s->block;
}

static const rlxvk_transformer_layer *transformer_layer(stand *s)
{
    s->layer = (rlxvk_transformer_layer){.hidden = T(1, 4, 4),
                                         .qkv_w = T(4, 12),
                                         .out_w = T(4, 4),
                                         .ln1_g = T(4),
                                         .fc1_w = T(4, 8),
                                         .fc2_w = T(8, 4),
                                         .ln2_g = T(4),
                                         .mask = T(4),
                                         .num_heads = 1,
                                         .head_dim = 4,
                                         .intermediate_size = 8};
    return &s->layer;
}

#include "null_calls.h"

static void begin(stand *s)
{
    static const float x[2] = {1, 2};
    memset(s, 0, sizeof *s);
    s->graph = new_graph();
    s->other = new_graph();
    for (size_t i = 0; i < ROOM; i++)
        s->floats[i] = 1;
    s->text = "";
    s->run_input = (rlxvk_run_input){.name = "x", .data = x, .length = 2};
    s->run_output = (rlxvk_run_output){.buffer = s->floats, .length = 2};
}

static void end(stand *s)
{
    for (size_t i = 0; i < ARRAY_COUNT(s->executables); i++)
        rlxvk_executable_destroy(s->executables[i]);
    for (size_t i = 0; i < ARRAY_COUNT(s->graphs); i++)
        rlxvk_graph_destroy(s->graphs[i]);
    rlxvk_graph_destroy(s->graph);
    rlxvk_graph_destroy(s->other);
    rlxvk_language_destroy(s->language);
    rlxvk_tokenizer_destroy(s->tokenizer);
    rlxvk_context_destroy(s->context);
    for (size_t i = 0; i < ARRAY_COUNT(s->models); i++)
        rlxvk_model_destroy(s->models[i]);
    message_free(&s->model_bytes);
    if (*s->path)
        unlink(s->path);
}

/* ---- Allowed results ---- */

/* Returns true if the message begins with the name of the call or of its op, for example matmul for
 * matmul_with. */
static bool names_call(const char *sentence, const char *function)
{
    const char *call = function + strlen("rlxvk_");
    size_t length = strspn(sentence, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length && strncmp(sentence, call, MIN(length, strlen(call))) == 0;
}

static bool answers_well(const null_call *c, rlxvk_status status, const char *sentence)
{
    if (status == RLXVK_OK)
        return c->optional;
    if (!names_call(sentence, c->function))
        return false;
    if (c->what == FOREIGN_TENSOR)
        return status == RLXVK_E_DANGLING || c->kind == GIVES_VALUE;
    return c->what == NO_TENSOR ||
           (c->what == NULL_POINTER && (c->optional || status == RLXVK_E_NULL));
}

/* The executable must still run after a call with a NULL argument. */
static bool still_runs(stand *s)
{
    const rlxvk_executable *e = s->executables[0];
    float y[2] = {0};
    rlxvk_run_output out = {.buffer = y, .length = 2};
    if (!e)
        return true;
    const float w[4] = {1, 2, 3, 4};
    expect_ok(rlxvk_set_param(s->executables[0], "w", w, 4));
    expect_ok(rlxvk_run(s->executables[0], &s->run_input, 1, &out, 1));
    return y[0] == 7 && y[1] == 10;
}

static bool is_fine(const null_call *c, bool print)
{
    static const char *const forms[] = {"", " NULL", " none", " foreign"};
    static stand s;
    rlxvk_quant_traits traits;
    rlxvk_status status;
    begin(&s);
    rlxvk_status marker = rlxvk_quant_query(UINT32_MAX, &traits); /* sets an old error message */
    char old[256], sentence[512];
    snprintf(old, sizeof old, "%s", rlxvk_last_error());
    c->call(&s, c->variant);
    status = s.status;
    snprintf(sentence, sizeof sentence, "%s", rlxvk_last_error());
    bool spoke = strcmp(old, sentence) != 0;
    if (c->kind == BUILDS) {
        status = rlxvk_graph_status(s.graph);
        if (status != RLXVK_OK)
            snprintf(sentence, sizeof sentence, "%s", rlxvk_graph_error(s.graph));
    }
    if (c->kind != GIVES_STATUS && status == RLXVK_OK && spoke) /* no graph, or returns no status */
        status = RLXVK_E_NULL;
    bool fine = marker != RLXVK_OK && s.text && answers_well(c, status, sentence) && still_runs(&s);
    if (print || !fine)
        print_message("%s %s%s -> %s%s%s\n", c->function, c->argument, forms[c->what],
                      rlxvk_status_name(status), status == RLXVK_OK ? "" : "  ",
                      status == RLXVK_OK ? "" : sentence);
    end(&s);
    return fine;
}

static bool print_table;

static void every_call_answers(void **state)
{
    size_t bad = 0, pointers = 0, tensors = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(null_calls); i++) {
        bad += !is_fine(&null_calls[i], print_table);
        pointers += null_calls[i].what == NULL_POINTER;
        tensors += null_calls[i].what == FOREIGN_TENSOR;
    }
    print_message("%d functions: %zu pointers, %zu tensors, %zu calls, %zu bad\n", NULL_FUNCTIONS,
                  pointers, tensors, ARRAY_COUNT(null_calls), bad);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call_answers)};
    print_table = argc > 1 && strcmp(argv[1], "table") == 0;
    return cmocka_run_group_tests(tests, open_all, close_all);
}
