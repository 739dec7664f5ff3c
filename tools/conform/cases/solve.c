/*
 * Cases of dense_solve and batched_dense_solve (in=a;b).
 *   dominant=V       adds V to the diagonal of every matrix first
 *   permuted=1       reverses the rows of A, so that every step must exchange rows
 *   run=E_SINGULAR   the run must end with this status
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor a = case_tensor(s, inputs, "a"), b = case_tensor(s, inputs, "b");
    rlxvk_shape shape = rlxvk_tensor_shape(g, a);
    double dominant = case_real(s, "dominant", 0);
    if (dominant != 0)
        a = rlxvk_add(g, a, case_diagonal(g, shape.dims[shape.rank - 1], (float)dominant));
    if (case_integer(s, "permuted", 0))
        a = rlxvk_reverse(g, a, (const int32_t[]){-2}, 1);
    bool batched = strcmp(s->row, "batched_dense_solve") == 0;
    return (batched ? rlxvk_batched_dense_solve : rlxvk_dense_solve)(g, a, b);
}

static void generate_sizes(case_list *list)
{
    static const int sizes[] = {1, 2, 3, 5, 16, 17, 31, 33, 64, 65, 80, 97, 129};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        const char *permuted = i % 2 ? "permuted=1 " : "";
        case_add(list, "dense_solve %sdominant=%d in=a:f32:%dx%d:unit;b:f32:%d", permuted,
                 2 + n / 4, n, n, n);
        case_add(list, "dense_solve %sdominant=1.5 in=a:f32:%dx%d:unit;b:f32:%dx%d", permuted, n, n,
                 n, (int)i % 4 + 1);
    }
    for (int n = 1; n <= 70; n += 23)
        for (int batch = 1; batch <= 7; batch += 3) {
            case_add(list, "batched_dense_solve dominant=%d in=a:f32:%dx%dx%d:unit;b:f32:%dx%d",
                     1 + n / 4, batch, n, n, batch, n);
            case_add(list,
                     "batched_dense_solve permuted=1 dominant=%d "
                     "in=a:f32:%dx%dx%d:unit;b:f32:%dx%dx3",
                     1 + n / 4, batch, n, n, batch, n);
        }
}

static void generate(case_list *list)
{
    static const char *const lines[] = {
        "dense_solve in=a:f32:8x8:unit;b:f32:8",
        "dense_solve in=a:f32:33x33:unit;b:f32:33",
        "dense_solve in=a:f32:100x100:unit;b:f32:100",
        /* More rows than a workgroup has lanes. */
        "dense_solve dominant=100 permuted=1 in=a:f32:521x521:unit;b:f32:521",
        "dense_solve in=a:f32:8x8:integers;b:f32:8:integers",
        "dense_solve dominant=1e30 in=a:f32:8x8:unit;b:f32:8:large",
        "dense_solve dominant=4 in=a:f32:0x0;b:f32:0",
        "dense_solve dominant=4 in=a:f32:5x5;b:f32:5x0",
        "dense_solve dominant=4 in=a:f32:0x0;b:f32:0x3",
        "dense_solve run=E_SINGULAR in=a:f32:5x5:zero;b:f32:5",
        "dense_solve run=E_SINGULAR in=a:f32:5x5:one;b:f32:5x2",
        "dense_solve run=E_SINGULAR in=a:f32:70x70:one;b:f32:70",
        "dense_solve run=E_SINGULAR in=a:f32:1x1:constant:nan;b:f32:1",
        "dense_solve run=E_SINGULAR in=a:f32:4x4:constant:inf;b:f32:4",
        "batched_dense_solve run=E_SINGULAR in=a:f32:3x5x5:zero;b:f32:3x5",
        "batched_dense_solve dominant=3 in=a:f32:0x5x5;b:f32:0x5",
        "batched_dense_solve dominant=3 in=a:f32:200x4x4:unit;b:f32:200x4",
        "dense_solve expect=E_ATTR in=a:f32:5x6;b:f32:5",
        "dense_solve expect=E_SHAPE in=a:f32:5x5;b:f32:6",
        "dense_solve expect=E_SHAPE in=a:f32:5;b:f32:5",
        "dense_solve expect=E_SHAPE in=a:f32:5x5;b:f32:5x5x5",
        "dense_solve expect=E_DTYPE in=a:u8:5x5:bytes;b:f32:5",
        "batched_dense_solve expect=E_SHAPE in=a:f32:3x5x5;b:f32:2x5",
        "batched_dense_solve expect=E_SHAPE in=a:f32:5x5;b:f32:5",
    };
    generate_sizes(list);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        case_add(list, "%s", lines[i]);
}

static const char *const rows[] = {"dense_solve", "batched_dense_solve", NULL};

const case_family solve_cases = {rows, build, generate};
