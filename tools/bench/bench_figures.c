/* See bench_figures.h. */
#include "bench/bench_figures.h"

#include <string.h>

static const char *const names[FIGURE_COUNT] = {
    [FIGURE_SPILLS] = "spills",
    [FIGURE_SCALAR_SPILLS] = "scalar_spills",
    [FIGURE_SCRATCH] = "scratch_bytes",
    [FIGURE_REGISTERS] = "registers",
    [FIGURE_SCALAR_REGISTERS] = "scalar_registers",
    [FIGURE_SHARED] = "shared_bytes",
    [FIGURE_OCCUPANCY] = "occupancy",
    [FIGURE_INSTRUCTIONS] = "instructions",
    [FIGURE_CODE] = "code_bytes",
    [FIGURE_LATENCY] = "latency",
    [FIGURE_INVERSE_THROUGHPUT] = "inverse_throughput",
};

/* The drivers' names. ACO: AMD; ir3: Qualcomm; NAK: NVIDIA; AGX: Apple. */
static const struct {
    const char *name;
    figure figure;
} known[] = {
    /* ACO */
    {"Spilled VGPRs", FIGURE_SPILLS},
    {"Spilled SGPRs", FIGURE_SCALAR_SPILLS},
    {"Scratch size", FIGURE_SCRATCH},
    {"VGPRs", FIGURE_REGISTERS},
    {"SGPRs", FIGURE_SCALAR_REGISTERS},
    {"LDS size", FIGURE_SHARED},
    {"Subgroups per SIMD", FIGURE_OCCUPANCY},
    {"Instructions", FIGURE_INSTRUCTIONS}, /* AGX, too */
    {"Code size", FIGURE_CODE},            /* of all four */
    {"Latency", FIGURE_LATENCY},
    {"Inverse Throughput", FIGURE_INVERSE_THROUGHPUT},
    /* ir3 */
    {"STP Count", FIGURE_SPILLS}, /* stores to memory of an invocation's own */
    {"Registers used", FIGURE_REGISTERS},
    {"Max Waves Per Core", FIGURE_OCCUPANCY},
    {"Instruction Count", FIGURE_INSTRUCTIONS},
    /* NAK */
    {"Spills to memory", FIGURE_SPILLS},
    {"Spills to reg", FIGURE_SCALAR_SPILLS}, /* uniform registers to vector registers */
    {"SLM size", FIGURE_SCRATCH},
    {"Number of GPRs", FIGURE_REGISTERS},
    {"Max warps/SM", FIGURE_OCCUPANCY},
    {"Instruction count", FIGURE_INSTRUCTIONS},
    {"Static cycle count", FIGURE_LATENCY},
    /* AGX */
    {"Spills", FIGURE_SPILLS},
    {"Scratch", FIGURE_SCRATCH},
    {"GPRs", FIGURE_REGISTERS},
    {"Uniforms", FIGURE_SCALAR_REGISTERS},
    {"Threads", FIGURE_OCCUPANCY},
};

const char *bench_figure_name(figure f)
{
    return names[f];
}

bench_figures bench_figures_of(const pipeline_description *about)
{
    bench_figures out = {.at = {0}};
    for (size_t f = 0; f < FIGURE_COUNT; f++)
        out.at[f] = -1;
    for (size_t i = 0; i < about->statistics.count; i++)
        for (size_t k = 0; k < ARRAY_COUNT(known); k++)
            if (strcmp(about->statistics.items[i].name, known[k].name) == 0)
                out.at[known[k].figure] =
                    MAX(out.at[known[k].figure], about->statistics.items[i].value);
    return out;
}

bool bench_is_troubled(const bench_figures *f)
{
    return f->at[FIGURE_SPILLS] > 0 || f->at[FIGURE_SCRATCH] > 0;
}

int bench_compare_trouble(const bench_figures *a, double seconds_a, const bench_figures *b,
                          double seconds_b)
{
    static const figure order[] = {FIGURE_SPILLS, FIGURE_SCRATCH, FIGURE_SCALAR_SPILLS};
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        double x = MAX(a->at[order[i]], 0), y = MAX(b->at[order[i]], 0);
        if (x != y)
            return x < y ? 1 : -1;
    }
    return (seconds_a < seconds_b) - (seconds_a > seconds_b);
}
