/*
 * Several runs in flight. rlxvk_submit queues a run and returns a ticket, and rlxvk_wait on the
 * ticket fills the outputs of that run. While the device works on some runs, the host prepares the
 * next one.
 */
#include <math.h>
#include <rlxvk.h>
#include <rlxvk_ops.h>
#include <stdio.h>

enum { RUNS = 12, IN_FLIGHT = 4, COUNT = 4096 };

/* One run in flight. `output` and `y` must live until its rlxvk_wait, because that call uses them.
 * The input need not, because rlxvk_submit copies it. */
typedef struct slot {
    rlxvk_ticket ticket;
    rlxvk_run_output output;
    float y[COUNT];
} slot;

static slot slots[IN_FLIGHT];

static float input_of(int run, int i)
{
    return 0.01f * (float)(run * i % 1009);
}

static rlxvk_status submit(rlxvk_executable *executable, int run)
{
    float x[COUNT];
    slot *s = &slots[run % IN_FLIGHT];
    for (int i = 0; i < COUNT; i++)
        x[i] = input_of(run, i);
    s->output = (rlxvk_run_output){.index = 0, .buffer = s->y, .length = COUNT};
    rlxvk_run_input in = {.name = "x", .data = x, .length = COUNT};
    return rlxvk_submit(executable, &in, 1, &s->output, 1, &s->ticket);
}

/* Waits for a run. Adds to *right how many elements agree with the same formula in plain C. */
static rlxvk_status finish(rlxvk_executable *executable, int run, int *right)
{
    const slot *s = &slots[run % IN_FLIGHT];
    rlxvk_status status = rlxvk_wait(executable, s->ticket);
    for (int i = 0; !status && i < COUNT; i++)
        *right += fabs(s->y[i] - sqrt(1 + pow(input_of(run, i), 2))) < 1e-5;
    return status;
}

int main(void)
{
    rlxvk_context *context = NULL;
    rlxvk_graph *g = NULL;
    rlxvk_executable *executable = NULL;
    const float one = 1;
    int right = 0;
    if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&g))
        goto error;
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(COUNT));
    rlxvk_tensor sum = rlxvk_fma(g, x, x, rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &one, 4));
    rlxvk_graph_output(g, rlxvk_sqrt(g, sum));
    rlxvk_compile_options options = {.max_in_flight = IN_FLIGHT};
    if (rlxvk_compile(context, g, &options, &executable))
        goto error;
    for (int run = 0; run < RUNS + IN_FLIGHT; run++) {
        if (run >= IN_FLIGHT && finish(executable, run - IN_FLIGHT, &right))
            goto error;
        if (run < RUNS && submit(executable, run))
            goto error;
    }
    printf("%d runs, up to %d in flight: %d of %d elements are right\n", RUNS, IN_FLIGHT, right,
           RUNS * COUNT);
    goto done;
error:
    fprintf(stderr, "%s\n", rlxvk_last_error());
done:
    rlxvk_executable_destroy(executable);
    rlxvk_graph_destroy(g);
    rlxvk_context_destroy(context);
    return right != RUNS * COUNT;
}
