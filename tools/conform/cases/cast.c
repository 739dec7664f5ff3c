/*
 * Cases of cast and copy: every pair of dtypes, values at the limits of the target, raw bytes at
 * any offset.
 *   to=DTYPE    the target of cast
 *   via=DTYPE   a cast to this dtype first
 *   shift=n     drops the first n rows of x by a view
 *   scratch=1   computes x (by copy)
 */
#include "conform/cases/cases.h"

#include <string.h>

/* In the order of rlxvk_dtype. */
static const char *const dtypes[] = {"f32", "f16", "bf16", "f64", "i8",   "i16",
                                     "i32", "i64", "u8",   "u32", "bool", "c64"};

static rlxvk_dtype dtype_named(const char *name)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (strcmp(name, dtypes[i]) == 0)
            return (rlxvk_dtype)i;
    return RLXVK_F32;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int64_t shift = case_integer(s, "shift", 0);
    const char *via = case_word(s, "via", NULL);
    rlxvk_tensor x = inputs[0];
    if (shift)
        x = rlxvk_narrow(g, x, 0, shift, rlxvk_tensor_shape(g, x).dims[0] - shift);
    if (case_integer(s, "scratch", 0))
        x = rlxvk_copy(g, x);
    if (via)
        x = rlxvk_cast(g, x, dtype_named(via));
    if (strcmp(s->row, "copy") == 0)
        return rlxvk_copy(g, x);
    return rlxvk_cast(g, x, dtype_named(case_word(s, "to", "f32")));
}

static void generate_casts(case_list *list)
{
    static const char *const ranges[] = {
        "special",
        "large",
        "range:-300:300",
        "range:-70000:70000",
        "range:-5e9:5e9",
        "range:-1e20:1e20",
        "range:-0.0001:0.0001",
        "range:-1e-7:1e-7",
        "range:65000:66000",
        "integers",
        "range:-2:2",
    };
    static const char *const shapes[] = {"scalar", "1",   "0",    "3x0", "1x2x1x2x1x2x1x2",
                                         "127",    "513", "7x11", "4099"};
    for (size_t to = 0; to < COUNT(dtypes); to++) {
        for (size_t from = 0; from < COUNT(dtypes); from++)
            case_add(list, "cast to=%s in=x:%s:5x13", dtypes[to], dtypes[from]);
        for (size_t i = 0; i < COUNT(ranges); i++)
            case_add(list, "cast to=%s in=x:f32:1000:%s", dtypes[to], ranges[i]);
        for (size_t i = 0; i < COUNT(shapes); i++)
            case_add(list, "cast to=%s in=x:%s:%s", dtypes[to], dtypes[i], shapes[i]);
        case_add(list, "cast to=%s in=x:u8:1031:bytes", dtypes[to]);
        case_add(list, "cast to=%s in=x:i8:1031:bytes", dtypes[to]);
        case_add(list, "cast to=%s via=i8 in=x:f32:300:range:-300:300", dtypes[to]);
        case_add(list, "cast to=%s via=bool in=x:f32:300:special", dtypes[to]);
        case_add(list, "cast to=%s via=c64 in=x:f32:300:special", dtypes[to]);
        case_add(list, "cast to=%s scratch=1 in=x:f32:3x300:large", dtypes[to]);
        case_add(list, "cast to=%s shift=1 scratch=1 in=x:i32:7x3:integers", dtypes[to]);
        case_add(list, "cast to=%s shift=3 in=x:f32:5x7:special", dtypes[to]);
    }
    for (int shift = 4; shift < 40; shift += 12) {
        case_add(list, "cast to=f32 shift=%d in=x:u8:40:bytes", shift);
        case_add(list, "cast to=i32 shift=%d in=x:i8:40:bytes", shift);
    }
}

static void generate_copies(case_list *list)
{
    static const char *const shapes[] = {"scalar", "1", "0", "2x0x3", "2x3x5", "127", "2051"};
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        for (size_t k = 0; k < COUNT(shapes); k++)
            case_add(list, "copy in=x:%s:%s", dtypes[i], shapes[k]);
        case_add(list, "copy shift=1 in=x:%s:3x8", dtypes[i]);
        case_add(list, "copy scratch=1 in=x:%s:9", dtypes[i]);
    }
    for (int shift = 4; shift < 41; shift += 12) {
        case_add(list, "copy shift=%d in=x:u8:41:bytes", shift);
        case_add(list, "copy shift=%d scratch=1 in=x:i8:43:bytes", shift);
    }
    case_add(list, "copy in=x:f32:1000:special");
    case_add(list, "copy in=x:f32:1x2x1x2x1x2x1x2:large");
    case_add(list, "copy via=u8 in=x:f32:50:range:0:255");
    case_add(list, "copy in=x:f32:700x501");
}

static void generate(case_list *list)
{
    generate_casts(list);
    generate_copies(list);
}

static const char *const rows[] = {"cast", "copy", NULL};

const case_family cast_cases = {rows, build, generate};
