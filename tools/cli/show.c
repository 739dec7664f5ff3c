/* rlxvk show: prints what is in a model file, what of it is not supported, and the memory that it
 * needs. --svg draws its graph as built and as compiled. */
#include "cli/commands.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "cli/run_job.h"
#include "model/model.h"

#include <rlxvk_inspect.h>
#include <rlxvk_report.h>
#include <rlxvk_symbols.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: rlxvk show MODEL.onnx [OPTION]...\n\n"
    "Prints the inputs, outputs, weights and ops of a model, what of it is not supported, and, if\n"
    "all sizes are known, the memory that it takes on a device. Exit status 1 if it cannot run.\n\n"
    "      --bind NAME=N      the size of a named dim\n"
    "      --bind NAME=N,N    the value of an input that decides sizes\n"
    "      --svg FILE.svg     draw the graph as built, and as compiled in FILE-compiled.svg. This\n"
    "                         needs the program dot of Graphviz; FILE.dot draws nothing\n"
    "      --precision P      of matrix products: f32 (default), f16, bf16, split\n"
    "      --device D         index, part of the name, UUID, or PCI address\n";

static const struct option long_options[] = {
    {"bind", required_argument, NULL, 'b'},
    {"svg", required_argument, NULL, 's'},
    {"precision", required_argument, NULL, 'x'},
    {"device", required_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct show_options {
    run_options run;
    const char *svg;
} show_options;

static bool parse_options(show_options *o, int argc, char **argv)
{
    for (int letter; (letter = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (letter == 'b' && o->run.bind_count < RUN_MOST)
            o->run.binds[o->run.bind_count++] = optarg;
        else if (letter == 's')
            o->svg = optarg;
        else if (letter == 'd')
            o->run.device = optarg;
        else if (letter == 'h')
            return o->run.help = true;
        else if (letter != 'x' || !parse_precision(optarg, &o->run.precision))
            return false; /* the mistake is printed, unless it is too many --bind */
    }
    if (optind < argc)
        o->run.model = argv[optind++];
    if (!o->run.model) {
        report_error("name a model file: rlxvk show MODEL.onnx");
        return false;
    }
    return parse_end(argc, argv, optind);
}

/* ---- The file ---- */

static void print_values(const char *title, const rlxvk_model_info *infos, size_t count)
{
    printf("%s\n", title);
    for (size_t i = 0; i < count; i++) {
        printf("  %s  %s", infos[i].name, infos[i].type);
        for (uint32_t k = 0; infos[i].has_shape && k < infos[i].shape.rank; k++) {
            printf("%s", k ? "x" : " ");
            if (infos[i].dim_names[k])
                printf("%s", infos[i].dim_names[k]);
            else if (infos[i].shape.dims[k] >= 0)
                printf("%lld", (long long)infos[i].shape.dims[k]);
            else
                printf("?");
        }
        printf("%s\n", infos[i].has_shape ? "" : " of an unknown shape");
    }
}

typedef rlxvk_status lister(const rlxvk_model *, rlxvk_model_info *, size_t, size_t *);

static rlxvk_status print_list(const rlxvk_model *m, const char *title, lister *list)
{
    rlxvk_model_info *infos = NULL;
    size_t count;
    rlxvk_status status;
    TRY(list(m, NULL, 0, &count));
    infos = memory_zeroed(count + 1, sizeof *infos);
    if (!infos)
        return status_fail_memory("values of a model");
    TRY(list(m, infos, count, &count));
    print_values(title, infos, count);
error:
    memory_free(infos);
    return status;
}

typedef struct op_count {
    const char *domain, *name;
    size_t count;
} op_count;

typedef VECTOR(op_count) op_counts;

static rlxvk_status count_ops(const onnx_graph *g, op_counts *out)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < g->node_count; i++) {
        const onnx_node *n = &g->nodes[i];
        size_t at = 0;
        while (at < out->count && (strcmp(out->items[at].name, n->op) != 0 ||
                                   strcmp(out->items[at].domain, n->domain) != 0))
            at++;
        if (at == out->count && !VECTOR_PUSH(out, (op_count){n->domain, n->op, 0}))
            return status_fail_memory("ops of a model");
        out->items[at].count++;
        for (size_t k = 0; k < n->attribute_count; k++)
            if (n->attributes[k].graph)
                TRY(count_ops(n->attributes[k].graph, out));
    }
error:
    return status;
}

static int more_often(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : strcmp(x->name, y->name);
}

static rlxvk_status print_ops(const onnx_model *m)
{
    op_counts counts = {0};
    size_t total = 0;
    rlxvk_status status;
    TRY(count_ops(&m->graph, &counts));
    for (size_t i = 0; i < m->function_count; i++)
        TRY(count_ops(&m->functions[i].body, &counts));
    for (size_t i = 0; i < counts.count; i++)
        total += counts.items[i].count;
    if (counts.count)
        qsort(counts.items, counts.count, sizeof *counts.items, more_often);
    printf("ops: %zu nodes%s\n", total, m->function_count ? ", functions included" : "");
    for (size_t i = 0; i < counts.count; i++)
        printf("  %6zu  %s%s%s\n", counts.items[i].count, counts.items[i].domain,
               *counts.items[i].domain ? ":" : "", counts.items[i].name);
error:
    VECTOR_FREE(&counts);
    return status;
}

static void print_weights(const onnx_graph *g)
{
    double bytes = 0, values = 0;
    for (size_t i = 0; i < g->initializer_count; i++) {
        const onnx_tensor *t = &g->initializers[i];
        values += (double)t->numel;
        bytes += (double)t->numel * onnx_type_bits(t->type) / 8;
    }
    printf("weights: %zu tensors, %.0f values, %.2f MB\n", g->initializer_count, values,
           bytes / 1e6);
}

static rlxvk_status print_language_model(const rlxvk_model *model)
{
    rlxvk_status status;
    printf("a language model in GGUF\n");
    TRY(print_list(model, "inputs:", rlxvk_model_inputs));
    TRY(print_list(model, "outputs:", rlxvk_model_outputs));
error:
    return status;
}

static rlxvk_status print_file(const rlxvk_model *model)
{
    const onnx_model *m = model_contents(model);
    rlxvk_status status;
    if (!m)
        return print_language_model(model);
    printf("producer: %s\nopsets:", m->producer && *m->producer ? m->producer : "not told");
    for (size_t i = 0; i < m->opset_count; i++)
        printf("%s %s %lld", i ? "," : "", *m->opsets[i].domain ? m->opsets[i].domain : "ai.onnx",
               (long long)m->opsets[i].version);
    printf("\n");
    TRY(print_list(model, "inputs:", rlxvk_model_inputs));
    TRY(print_list(model, "outputs:", rlxvk_model_outputs));
    print_weights(&m->graph);
    TRY(print_ops(m));
error:
    return status;
}

/* ---- The graph ---- */

static rlxvk_status draw_graph(const rlxvk_graph *g, const char *path)
{
    size_t length;
    char *dot = NULL;
    rlxvk_status status;
    TRY(rlxvk_graph_dot(g, NULL, 0, &length));
    dot = memory_zeroed(length + 1, 1);
    if (!dot)
        return status_fail_memory("picture");
    TRY(rlxvk_graph_dot(g, dot, length + 1, &length));
    TRY(picture_write(path, "", dot, length));
error:
    memory_free(dot);
    return status;
}

static rlxvk_status draw_executable(const rlxvk_executable *e, const char *path)
{
    size_t length;
    char *dot = NULL;
    rlxvk_status status;
    TRY(rlxvk_executable_dot(e, NULL, 0, &length));
    dot = memory_zeroed(length + 1, 1);
    if (!dot)
        return status_fail_memory("picture");
    TRY(rlxvk_executable_dot(e, dot, length + 1, &length));
    TRY(picture_write(path, "-compiled", dot, length));
error:
    memory_free(dot);
    return status;
}

/* Prints what is not supported; *out_good: nothing. */
static rlxvk_status print_graph(run_job *j, const char *svg, bool *out_good)
{
    static char problems[8192];
    text t = {problems, sizeof problems, 0};
    rlxvk_graph *g = NULL;
    rlxvk_status status = run_job_graph(j, &g);
    *out_good = status == RLXVK_OK;
    if (status != RLXVK_OK) {
        run_job_explain(j, status, &t);
        printf("not supported:\n%s\n", problems);
        return RLXVK_OK;
    }
    printf("graph: %zu nodes, all is supported\n", rlxvk_graph_node_count(g));
    if (svg)
        status = draw_graph(g, svg);
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_status print_memory(run_job *j, const char *svg)
{
    rlxvk_memory_report memory = {0};
    rlxvk_plan_report plan = {0};
    rlxvk_device_info device;
    rlxvk_context_options options = {0};
    rlxvk_status status;
    TRY(option_device(j->o->device, &device, &options));
    TRY(rlxvk_context_create(&options, &j->context));
    TRY(run_job_compile(j));
    rlxvk_executable_memory(j->e, &memory);
    rlxvk_executable_plan(j->e, &plan);
    printf("memory: weights %.2f MB, inputs and outputs %.2f MB, scratch %.2f MB\n",
           (double)memory.weight_bytes / 1e6, (double)memory.state_bytes / 1e6,
           (double)memory.scratch_bytes / 1e6);
    printf("run: %u dispatches, %u host steps\n", plan.dispatches, plan.host_steps);
    if (svg)
        TRY(draw_executable(j->e, svg));
error:
    return status;
}

static rlxvk_status show(const show_options *o, bool *out_good)
{
    run_job *j = memory_zeroed(1, sizeof *j);
    rlxvk_status status;
    if (!j)
        return status_fail_memory("model");
    j->o = &o->run;
    TRY(run_job_open(j));
    TRY(print_file(j->model));
    TRY(print_graph(j, o->svg, out_good));
    if (!*out_good)
        goto error;
    if (run_job_has_sizes(j))
        TRY(print_memory(j, o->svg));
    else
        printf("memory: depends on named dims; give them sizes (--bind NAME=SIZE)\n");
error:
    run_job_close(j);
    rlxvk_context_destroy(j->context);
    memory_free(j);
    return status;
}

int command_show(int argc, char **argv)
{
    static show_options o;
    bool good = false;
    rlxvk_status status;
    if (!parse_options(&o, argc, argv))
        return EXIT_USAGE;
    if (o.run.help)
        return print_help(help);
    TRY(show(&o, &good));
error:
    if (status != RLXVK_OK)
        report_status(status);
    return status == RLXVK_OK && good ? EXIT_OK : EXIT_FAILED;
}
