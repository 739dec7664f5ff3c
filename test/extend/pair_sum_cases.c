/* Cases of pair_sum, the op that extend.sh adds. */
#include "conform/cases/cases.h"

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    return rlxvk_pair_sum(g, case_tensor(s, inputs, "x"));
}

static void generate(case_list *list)
{
    static const char *const inputs[] = {
        "2", "0", "3x2", "5x0x4", "33x70", "2000:special", "1x2x1x6:large", "4x1000:unit"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        case_add(list, "pair_sum in=x:f32:%s", inputs[i]);
    case_add(list, "pair_sum expect=E_SHAPE in=x:f32:4x3");
}

static const char *const rows[] = {"pair_sum", NULL};

const case_family pair_sum_cases = {rows, build, generate};
