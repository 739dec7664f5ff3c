/*
 * A program of an older version: built with that version's headers, run with a later library. It
 * hands over every struct that may grow, and each lies right before memory that nobody may touch:
 * a library that reads or writes more than the program has ends it. Ends with 0 if all is right.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_files.h>
#include <rlxvk_inspect.h>
#include <rlxvk_ops.h>
#include <rlxvk_ops_signal.h>
#include <rlxvk_ops_splat.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_quant.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures;

static void check_at(int line, int holds, const char *what)
{
    if (holds)
        return;
    printf("line %d: %s: %s\n", line, what, rlxvk_last_error());
    failures++;
}
#define CHECK(condition) check_at(__LINE__, condition, #condition)
#define OK(call)         check_at(__LINE__, (call) == RLXVK_OK, #call)

/* ---- Structs at the end of what may be touched ---- */

static void *at_end(const void *bytes, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
    char *memory =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + room, page, PROT_NONE) != 0)
        exit(2);
    memory += room - size;
    if (bytes)
        memcpy(memory, bytes, size);
    else
        memset(memory, 0xa5, size); /* not initialized */
    return memory;
}
#define PUT(type, ...) ((type *)at_end(&(const type){__VA_ARGS__}, sizeof(type)))
#define ITEMS(type, ...)                                                                           \
    ((type *)at_end((const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__})))
#define ROOM(type, count) ((type *)at_end(NULL, (count) * sizeof(type)))

/* ---- Builders ---- */

static rlxvk_graph *g;
static rlxvk_tensor leaves; /* those made so far */

static rlxvk_tensor make_leaf(rlxvk_dtype dtype, rlxvk_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%u", leaves.id++);
    return rlxvk_param(g, name, dtype, shape);
}
#define LEAF(...)  make_leaf(RLXVK_F32, RLXVK_SHAPE(__VA_ARGS__))
#define BYTES(...) make_leaf(RLXVK_I8, RLXVK_SHAPE(__VA_ARGS__))
#define BUILT(call)                                                                                \
    check_at(__LINE__, (call).id &&rlxvk_graph_status(g) == RLXVK_OK, rlxvk_graph_error(g))

static void build_products(void)
{
    const int32_t axes[] = {1, 0};
    const float scales[] = {0.5f};
    BUILT(rlxvk_matmul_with(g, LEAF(2, 3), LEAF(4, 3), PUT(rlxvk_matmul_options, false, true)));
    BUILT(rlxvk_projection(g, LEAF(1, 8), LEAF(4, 8), PUT(rlxvk_projection_options, 0)));
    BUILT(rlxvk_dequant_matmul_scaled(g, LEAF(1, 8), BYTES(8, 2), LEAF(2), RLXVK_NONE,
                                      PUT(rlxvk_quant_scheme, .kind = RLXVK_QUANT_INT8, .block = 8,
                                          .n = 2)));
    BUILT(rlxvk_dot_general(g, LEAF(2, 3), LEAF(3, 2),
                            PUT(rlxvk_dot_general_options, &axes[0], &axes[1], 1)));
    BUILT(rlxvk_quantize(g, LEAF(5), PUT(rlxvk_quantize_options, scales, NULL, 1)));
    BUILT(rlxvk_qconv2d(g, BYTES(1, 2, 5, 5), BYTES(2, 2, 3, 3), RLXVK_NONE,
                        PUT(rlxvk_qconv2d_options, .requantize = {.multiplier = 1})));
    BUILT(
        rlxvk_group_limited_gate(g, LEAF(2, 64), LEAF(2, 64), PUT(rlxvk_gate_options, .top_k = 4)));
}

static void build_attention(void)
{
    const rlxvk_tensor x = LEAF(1, 3, 4), square = LEAF(4, 4), vector = LEAF(4),
                       cache[] = {LEAF(1, 5, 4), LEAF(1, 5, 4)};
    BUILT(rlxvk_rope(g, x, LEAF(3, 2), LEAF(3, 2),
                     PUT(rlxvk_rope_options, .head_dim = 4, .n_rot = 4)));
    BUILT(rlxvk_attention(g, x, x, x, RLXVK_NONE, PUT(rlxvk_attention_options, .num_heads = 2)));
    BUILT(rlxvk_attention_step(g, x, x, x, cache[0], cache[1], LEAF(1), RLXVK_NONE, RLXVK_NONE,
                               PUT(rlxvk_attention_step_options, .heads = 1, .head_dim = 4)));
    BUILT(
        rlxvk_axial_rope2d(g, LEAF(1, 4, 8),
                           PUT(rlxvk_axial_rope2d_options, .end_x = 2, .end_y = 2, .head_dim = 8)));
    BUILT(rlxvk_fused_attention_block(g, PUT(rlxvk_attention_block, .hidden = x,
                                             .qkv_w = LEAF(4, 12), .out_w = square,
                                             .mask = LEAF(1, 3), .num_heads = 2, .head_dim = 2)));
    BUILT(rlxvk_fused_transformer_layer(
        g, PUT(rlxvk_transformer_layer, .hidden = x, .qkv_w = LEAF(4, 12), .out_w = square,
               .ln1_g = vector, .fc1_w = LEAF(4, 6), .fc2_w = LEAF(6, 4), .ln2_g = vector,
               .mask = LEAF(1, 3), .num_heads = 2, .head_dim = 2, .intermediate_size = 6)));
}

static void build_images(void)
{
    const rlxvk_tensor x = LEAF(1, 2, 6, 6), w = LEAF(4, 2, 3, 3);
    rlxvk_tensor splats[7];
    const int64_t words[] = {3, 3, 4, 1, 3, 3, 23};
    for (int i = 0; i < 7; i++)
        splats[i] = LEAF(words[i]);
    BUILT(rlxvk_conv(g, x, w, RLXVK_NONE, PUT(rlxvk_conv_options, .padding = {1, 1})));
    BUILT(rlxvk_fused_conv(g, x, w, LEAF(4), RLXVK_NONE,
                           PUT(rlxvk_fused_conv_options, .window = {.padding = {1, 1}},
                               .activation_first = true)));
    BUILT(rlxvk_conv_same(g, x, w, RLXVK_NONE, PUT(rlxvk_conv_options, .stride = {2, 2})));
    BUILT(rlxvk_pool_max(g, x, PUT(rlxvk_pool_options, .kernel = {2, 2})));
    BUILT(rlxvk_resize(g, x, PUT(rlxvk_resize_options, .size = {3, 3})));
    BUILT(rlxvk_grid_sample(g, x, LEAF(1, 2, 2, 2), PUT(rlxvk_grid_options, 0)));
    BUILT(rlxvk_gaussian_splat_render(
        g,
        PUT(rlxvk_gaussian_splat_scene, splats[0], splats[1], splats[2], splats[3], splats[4],
            splats[5], splats[6]),
        at_end(&(const rlxvk_gaussian_splat_options)RLXVK_GAUSSIAN_SPLAT_DEFAULTS,
               sizeof(rlxvk_gaussian_splat_options))));
}

static void build_signals(void)
{
    BUILT(rlxvk_stft(g, LEAF(64), LEAF(16), PUT(rlxvk_stft_options, 16, 8)));
    BUILT(rlxvk_welch_power(g, LEAF(4, 16), PUT(rlxvk_welch_options, 2)));
    BUILT(rlxvk_welch(g, LEAF(64), LEAF(16), PUT(rlxvk_welch_frame_options, 16, 8)));
    BUILT(rlxvk_istft(g, LEAF(3, 18), LEAF(16), PUT(rlxvk_istft_options, 16, 8)));
    BUILT(rlxvk_signal_mel_filterbank(g, PUT(rlxvk_mel_options, .rate = 16000, .n_fft = 64,
                                             .n_mels = 4)));
}

static void build_others(void)
{
    const rlxvk_region_step step = {RLXVK_REGION_ACTIVATION, RLXVK_ACTIVATION_RELU - 1, 0, 0};
    const rlxvk_tensor x = LEAF(5), image = LEAF(4, 3), channels = LEAF(3);
    rlxvk_graph *body = NULL;
    OK(rlxvk_graph_create(&body));
    rlxvk_graph_output(body, rlxvk_relu(body, rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(5))));
    BUILT(rlxvk_scan(g, body, &x, 1, PUT(rlxvk_scan_options, .length = 3)));
    BUILT(rlxvk_elementwise_region(g, &x, 1,
                                   PUT(rlxvk_region, .shape = RLXVK_SHAPE(5), .steps = &step,
                                       .step_count = 1)));
    BUILT(rlxvk_sample(g, LEAF(2, 5), PUT(rlxvk_sample_options, .temperature = 1)));
    BUILT(rlxvk_narrow_with(g, x, 0, 4, 2, PUT(rlxvk_narrow_options, .clamp_tail = true)));
    BUILT(rlxvk_pad(g, x, (int64_t[]){1}, (int64_t[]){2}, 1,
                    PUT(rlxvk_pad_options, .mode = RLXVK_PAD_EDGE)));
    BUILT(rlxvk_rnn(g, LEAF(1, 3, 2), LEAF(8), LEAF(16), LEAF(4), RLXVK_NONE,
                    PUT(rlxvk_recurrent_options, .hidden_size = 4), NULL));
    BUILT(rlxvk_dropout(g, x, PUT(rlxvk_dropout_options, .rate = 0.5f), RLXVK_NONE));
    BUILT(rlxvk_batch_norm_training(g, image, channels, channels, LEAF(3), LEAF(3),
                                    PUT(rlxvk_batch_norm_options, .momentum = 0.5f)));
    BUILT(rlxvk_fake_quantize(g, x, RLXVK_NONE, PUT(rlxvk_fake_quantize_options, .bits = 4)));
    BUILT(rlxvk_adamw(g, LEAF(5), x, LEAF(5), LEAF(5), PUT(rlxvk_adamw_options, .step = 1),
                      PUT(rlxvk_optimizer_data, .gradient_scale = LEAF(1)), NULL));
    BUILT(rlxvk_sgd(g, LEAF(5), x, LEAF(5), PUT(rlxvk_sgd_options, .momentum = 0.5f), NULL, NULL));
    BUILT(rlxvk_lion(g, LEAF(5), x, LEAF(5), PUT(rlxvk_lion_options, .beta1 = 0.5f), NULL, NULL));
    rlxvk_graph_destroy(body);
}

/* ---- Calls without a graph ---- */

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count, (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return true;
}

static int twice(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                 const rlxvk_shape *shape, float *out)
{
    (void)count, (void)attributes, (void)size;
    for (int64_t i = 0; i < shape->dims[0]; i++)
        out[i] = 2 * inputs[0].values[i];
    return 0;
}

static bool fill(const rlxvk_custom_call *call)
{
    (void)call;
    return false;
}

static void call_without_graph(void)
{
    static const uint32_t words[5];
    const float numbers[] = {1, 2};
    char text[64];
    size_t length = 0;
    rlxvk_quant_traits *traits = ROOM(rlxvk_quant_traits, 1);
    rlxvk_quant_sizes *sizes = ROOM(rlxvk_quant_sizes, 1);
    OK(rlxvk_quant_query(RLXVK_QUANT_INT8, traits));
    CHECK(strcmp(traits->name, "int8") == 0 && traits->struct_size == 0);
    OK(rlxvk_quant_matrix_sizes(PUT(rlxvk_quant_scheme, .block = 8, .n = 2), 16, sizes));
    CHECK(sizes->code_bytes == 32 && sizes->scale_count == 4);
    OK(rlxvk_values_text(numbers, RLXVK_F32, RLXVK_SHAPE(2),
                         PUT(rlxvk_values_options, .precision = 2), text, sizeof text, &length));
    CHECK(strcmp(text, "[1. 2.]") == 0);
    OK(rlxvk_custom_register(PUT(rlxvk_custom_op, .name = "twice", .input_count = 1,
                                 .infer = same_shape, .host = twice)));
    CHECK(rlxvk_custom_register(
              PUT(rlxvk_custom_op, .name = "no_kernel", .input_count = 1, .infer = same_shape,
                  .kernel = PUT(rlxvk_custom_kernel, words, 5, 4, fill))) == RLXVK_E_ATTR);
    CHECK(strstr(rlxvk_last_error(), "word") != NULL);
}

/* ---- Runs ---- */

static void look_at_graph(const rlxvk_graph *graph)
{
    rlxvk_node_info *inputs = ROOM(rlxvk_node_info, 3), *node = ROOM(rlxvk_node_info, 1);
    rlxvk_problem *problems = ROOM(rlxvk_problem, 2);
    size_t count = 0;
    OK(rlxvk_graph_inputs(graph, inputs, 3, &count));
    CHECK(count == 2 && strcmp(inputs[0].name, "a") == 0 && strcmp(inputs[1].name, "b") == 0);
    CHECK(inputs[2].node == 0xa5a5a5a5u);
    OK(rlxvk_graph_node(graph, 1, node));
    CHECK(strcmp(node->name, "b") == 0 && strcmp(node->shape_text, "4") == 0);
    OK(rlxvk_graph_verify(graph, NULL, 0, problems, 2, &count));
    CHECK(count == 0);
}

static void look_at_executable(rlxvk_executable *e)
{
    rlxvk_tensor_info *infos = ROOM(rlxvk_tensor_info, 2);
    rlxvk_memory_report *memory = ROOM(rlxvk_memory_report, 1);
    rlxvk_plan_report *plan = ROOM(rlxvk_plan_report, 1);
    rlxvk_family_report *family = ROOM(rlxvk_family_report, 1);
    rlxvk_extent_report *extent = ROOM(rlxvk_extent_report, 1);
    rlxvk_step_time *steps = ROOM(rlxvk_step_time, 2);
    rlxvk_rng_options *rng = ROOM(rlxvk_rng_options, 1);
    size_t count = 0;
    OK(rlxvk_executable_inputs(e, infos, 2, &count));
    CHECK(count == 2 && strcmp(infos[1].name, "b") == 0 && infos[1].shape.dims[0] == 4);
    OK(rlxvk_executable_params(e, infos, 2, &count));
    CHECK(count == 2 && strcmp(infos[0].name, "v") == 0 && strcmp(infos[1].name, "w") == 0);
    OK(rlxvk_executable_outputs(e, infos, 2, &count));
    CHECK(count == 2 && infos[0].written && infos[1].written);
    rlxvk_executable_memory(e, memory);
    CHECK(memory->weight_bytes > 0 && memory->block_count > 0);
    rlxvk_executable_plan(e, plan);
    CHECK(plan->runs == 1 && plan->struct_size == 0);
    rlxvk_executable_family(e, family);
#if RLXVK_VERSION_MINOR >= 2
    rlxvk_cached_bindings_report *bindings = ROOM(rlxvk_cached_bindings_report, 1);
    rlxvk_executable_cached_bindings(e, bindings);
    CHECK(bindings->members == family->members);
#endif
    CHECK(family->members == 0);
    (void)rlxvk_extent_supported(e, extent);
    CHECK(extent->actual == 0 && extent->reason != NULL);
    OK(rlxvk_executable_profile(e, steps, 2, &count));
    CHECK(count >= 2 && steps[0].name && steps[1].name);
    rlxvk_get_rng(e, rng);
    CHECK(rng->seed == 7 && rng->struct_size == 0);
    OK(rlxvk_set_rng(e, rng));
    OK(rlxvk_set_rng(e, PUT(rlxvk_rng_options, .seed = 8)));
}

static void save_and_load(rlxvk_executable *e, const char *path)
{
    const char *const names[] = {"v", "w"};
    float v[4] = {0};
    OK(rlxvk_save_params(e, path, PUT(rlxvk_save_options, names, 2)));
    OK(rlxvk_clear_param(e, "v"));
    OK(rlxvk_load_params(e, path, PUT(rlxvk_load_options, .convert = RLXVK_ON)));
    OK(rlxvk_read_param(e, "v", v, 4));
    CHECK(v[0] == 1 && v[3] == 4);
}

/* a v + b w, and its double by the custom op; in the end with a ticket. */
static void run(rlxvk_executable *e)
{
    const float v[] = {1, 2, 3, 4}, w[] = {10, 10, 10, 10}, a[] = {1, 1, 1, 1}, b[] = {0, 1, 2, 3};
    float y[4], z[4];
    rlxvk_ticket ticket = 0;
    const rlxvk_run_input *in = ITEMS(rlxvk_run_input, {"a", a, 4}, {"b", b, 4, RLXVK_F32, false});
    const rlxvk_run_output *out = ITEMS(rlxvk_run_output, {0, y, 4}, {1, z, 4});
    rlxvk_bad_node *bad = ROOM(rlxvk_bad_node, 1);
#if RLXVK_VERSION_MINOR >= 2
    rlxvk_wrong_node *wrong = ROOM(rlxvk_wrong_node, 1), *worst = ROOM(rlxvk_wrong_node, 2);
    size_t count = 1;
#endif
    OK(rlxvk_set_params(e, ITEMS(rlxvk_param_item, {"v", v, sizeof v}, {"w", w, sizeof w}), 2));
    OK(rlxvk_run(e, in, 2, out, 2));
    CHECK(y[0] == 1 && y[3] == 34 && z[0] == 2 && z[3] == 68);
    look_at_executable(e);
    OK(rlxvk_first_bad_node(e, in, 2, bad));
    CHECK(!bad->found);
#if RLXVK_VERSION_MINOR >= 2
    OK(rlxvk_first_wrong_node(e, in, 2, wrong, worst, 2, &count));
    CHECK(!wrong->found && count == 0 && wrong->judged_nodes > 0);
#endif
    memset(z, 0, sizeof z);
    OK(rlxvk_submit(e, in, 2, out, 2, &ticket));
    OK(rlxvk_wait(e, ticket));
    CHECK(z[0] == 2 && z[3] == 68);
}

static void compile_and_run(const char *path)
{
    rlxvk_device_info *devices = ROOM(rlxvk_device_info, 2), *found = ROOM(rlxvk_device_info, 1);
    rlxvk_context *context = NULL;
    rlxvk_graph *graph = NULL;
    rlxvk_executable *e = NULL;
    size_t count = 0;
    const rlxvk_shape four = RLXVK_SHAPE(4);
    OK(rlxvk_device_list(devices, 2, &count));
    OK(rlxvk_device_find("", found));
    CHECK(count > 0 && found->usable && devices[0].struct_size == 0);
    OK(rlxvk_context_create(PUT(rlxvk_context_options, .device = found), &context));
    rlxvk_context_device(context, found);
    CHECK(found->usable);
    OK(rlxvk_graph_create(&graph));
    rlxvk_tensor a = rlxvk_input(graph, "a", RLXVK_F32, four);
    rlxvk_tensor b = rlxvk_input(graph, "b", RLXVK_F32, four);
    rlxvk_tensor v = rlxvk_mul(graph, a, rlxvk_param(graph, "v", RLXVK_F32, four));
    rlxvk_tensor w = rlxvk_mul(graph, b, rlxvk_param(graph, "w", RLXVK_F32, four));
    rlxvk_tensor y = rlxvk_add(graph, v, w);
    rlxvk_graph_output(graph, y);
    rlxvk_graph_output(graph, rlxvk_custom(graph, "twice", &y, 1, NULL, 0));
    look_at_graph(graph);
    OK(rlxvk_compile(context, graph,
                     PUT(rlxvk_compile_options, .profile = RLXVK_ON,
                         .rng = PUT(rlxvk_rng_options, .seed = 7),
                         .bucket_axes = ITEMS(rlxvk_bucket_axis, {"a", 0}, {"b", 0, false}),
                         .bucket_axis_count = 2),
                     &e));
    if (e) {
        run(e);
        save_and_load(e, path);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(graph);
    rlxvk_context_destroy(context);
}

int main(int argc, char **argv)
{
    OK(rlxvk_graph_create(&g));
    build_products();
    build_attention();
    build_images();
    build_signals();
    build_others();
    rlxvk_graph_destroy(g);
    call_without_graph();
    compile_and_run(argc > 1 ? argv[1] : "older.npz");
    return failures != 0;
}
