/*
 * A program of a later version, whose structs have more members (grow.awk). With today's library it
 * runs as long as these are zeros; what asks for more is refused. With "own" it runs with the later
 * library, which reads and fills them as far as it knows them.
 */
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>
#include <string.h>

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

static void run(rlxvk_executable *e, bool own)
{
    float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8}, sum[4], product[4];
    rlxvk_run_input in[] = {RLXVK_SIZED(rlxvk_run_input, "x", x, 4),
                            RLXVK_SIZED(rlxvk_run_input, "y", y, 4)};
    rlxvk_run_output out[] = {RLXVK_SIZED(rlxvk_run_output, 0, sum, 4),
                              RLXVK_SIZED(rlxvk_run_output, 1, product, 4)};
    rlxvk_tensor_info infos[2] = {RLXVK_SIZED(rlxvk_tensor_info, 0),
                                  RLXVK_SIZED(rlxvk_tensor_info, 0)};
    rlxvk_plan_report plan = RLXVK_SIZED(rlxvk_plan_report, .grown = {1, 2, 3}), bare;
    size_t count;
    OK(rlxvk_run(e, in, 2, out, 2));
    CHECK(sum[0] == 6 && sum[3] == 12 && product[0] == 5 && product[3] == 32);
    OK(rlxvk_executable_inputs(e, infos, 2, &count));
    CHECK(count == 2 && strcmp(infos[0].name, "x") == 0 && strcmp(infos[1].name, "y") == 0);
    rlxvk_executable_plan(e, &plan);
    CHECK(plan.runs == 1 && plan.grown[0] == !own && plan.grown[2] == (own ? 0 : 3));
    memset(&bare, 0xa5, sizeof bare);
    rlxvk_executable_plan(e, &bare);
    CHECK(bare.runs == 1 && bare.struct_size == 0 && bare.grown[0] == 0xa5a5a5a5a5a5a5a5u);
    in[1].grown[2] = 1;
    CHECK((rlxvk_run(e, in, 2, out, 2) == RLXVK_OK) == own);
    CHECK(own || strstr(rlxvk_last_error(), "rlxvk_run_input has "));
}

int main(int argc, char **argv)
{
    bool own = argc > 1 && strcmp(argv[1], "own") == 0;
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_compile_options options = RLXVK_SIZED(rlxvk_compile_options, .fusion = RLXVK_OFF);
    OK(rlxvk_context_create(NULL, &context));
    OK(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_graph_output(g, rlxvk_add(g, x, y));
    rlxvk_graph_output(g, rlxvk_mul(g, x, y));
    options.grown[1] = 1;
    CHECK((rlxvk_compile(context, g, &options, &e) == RLXVK_OK) == own);
    CHECK(own || strstr(rlxvk_last_error(), "leave later members 0, or use a later library"));
    options.grown[1] = 0;
    rlxvk_executable_destroy(e);
    OK(rlxvk_compile(context, g, &options, &e));
    if (e)
        run(e, own);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return failures != 0;
}
