/*
 * Cases of ops that pad, roll, tile and slice:
 *   pad            before, after, mode, value
 *   pad_backward   axis, before, extent, mode; in=dy
 *   roll           shifts, axes
 *   tile           repeats
 *   slice          starts, stops, steps; "first" and "last" stand for ends that are left out
 *
 * shift=n drops the first n rows of x by a view. turned=1 exchanges axes before the last one, so
 * that x is a view with other strides.
 */
#include "conform/cases/cases.h"

#include <stdlib.h>
#include <string.h>

static rlxvk_pad_mode mode_of(const case_spec *s)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *word = case_word(s, "mode", "constant");
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(word, names[i]) == 0)
            return (rlxvk_pad_mode)i;
    return (rlxvk_pad_mode)9;
}

static size_t numbers(const case_spec *s, const char *key, int64_t out[16])
{
    const char *word = case_word(s, key, "");
    size_t count = 0;
    while (*word && count < 16) {
        const char *end = strchr(word, ',');
        out[count++] = strncmp(word, "first", 5) == 0  ? RLXVK_SLICE_FIRST
                       : strncmp(word, "last", 4) == 0 ? RLXVK_SLICE_LAST
                                                       : strtoll(word, NULL, 10);
        word = end ? end + 1 : "";
    }
    return count;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_turned(g, s, case_shifted(g, s, "shift", inputs[0]));
    rlxvk_pad_options o = {mode_of(s), (float)case_real(s, "value", 0)};
    int64_t a[16] = {0}, b[16] = {0}, c[16] = {0};
    int32_t axes[RLXVK_MAX_RANK] = {0};
    if (strcmp(s->row, "pad_backward") == 0)
        return rlxvk_pad_backward(g, x, (int32_t)case_integer(s, "axis", 0),
                                  case_integer(s, "before", 0), case_integer(s, "extent", 0),
                                  o.mode);
    if (strcmp(s->row, "slice") == 0) {
        size_t count = numbers(s, "starts", a);
        numbers(s, "stops", b);
        return rlxvk_slice(g, x, a, b, numbers(s, "steps", c) ? c : NULL, count);
    }
    if (strcmp(s->row, "roll") == 0) {
        case_integers(s, "axes", axes, RLXVK_MAX_RANK);
        return rlxvk_roll(g, x, a, axes, numbers(s, "shifts", a));
    }
    if (strcmp(s->row, "tile") == 0)
        return rlxvk_tile(g, x, a, numbers(s, "repeats", a));
    numbers(s, "after", b);
    return rlxvk_pad(g, x, a, b, numbers(s, "before", a), &o);
}

/* ---- Lines ---- */

static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};

static void generate_pads(case_list *list)
{
    static const char *const every_mode[] = {
        "before=1 after=2 in=x:f32:7:special",
        "before=2,1 after=1,3 in=x:f32:3x5",
        "before=1,0,2 after=0,3,1 in=x:f32:4x3x5",
        "before=4,0 after=8,0 in=x:f32:6x8",
        "before=4 after=4 in=x:f32:3x8",
        "before=9,11 after=10,7 in=x:f32:2x3",
        "before=-1,2 after=2,-3 in=x:f32:4x6",
        "before=-5,1 after=6,1 in=x:f32:4x6",
        "before=5 after=-3 in=x:f32:3x2",
        "before=3 after=3 in=x:f32:4x1",
        "before=1,1,1,1,1,1,1,1 after=1,0,1,0,1,0,1,0 in=x:f32:1x2x1x2x1x2x2x3",
        "before=1,1,1,1,1,1 after=1,0,1,0,1,0 in=x:c64:2x1x2x1x2x3",
        "before=1,2 after=0,1 in=x:c64:3x4",
        "before=1 after=1 shift=1 in=x:f32:4x3x5",
        "before=2,3 after=2,3 turned=1 in=x:f32:2x5x3",
        "before=2,0 after=2,0 in=x:i32:5x4:integers",
        "before=1 after=1 in=x:f16:9",
        "before=0,3 after=0,2 in=x:f32:300x701",
    };
    static const char *const others[] = {
        "before=1,1 after=1,1 value=2.5 in=x:f32:2x3",
        "before=4,4 after=4,4 value=-7 in=x:f32:4x8",
        "before=1 after=1 value=2.7 in=x:i32:5:integers",
        "before=1 after=2 value=3 in=x:bool:5:bool",
        "before=1 after=2 value=-3 in=x:c64:5",
        "before=2 after=0 value=1e-9 in=x:f16:5",
        "before=1 after=2 value=nan in=x:f32:5",
        "in=x:f32:scalar",
        "in=x:f32:3x4",
        "before=0,0 after=0,0 in=x:f32:3x4",
        "before=1,2 after=1,2 in=x:f32:0x3",
        "before=1 after=2 value=4 in=x:f32:0",
        "before=1,3,0,3,1,4,1 after=1,0,1,0,1,0,1 value=3 in=x:f32:2x1x2x2x0x2x2",
        "before=-2 after=-2 in=x:f32:4",
        "before=-2 after=0 mode=edge in=x:f32:2x3x2",
        "before=0,1 after=0,1 mode=wrap in=x:f32:0x3",
        "before=70000 after=3 mode=edge in=x:f32:5",
        "before=5 after=70001 mode=reflect in=x:f32:2",
        "expect=E_ATTR before=1,1 after=1,1 in=x:f32:3",
        "expect=E_ATTR before=-2 after=-3 in=x:f32:4",
        "expect=E_ATTR before=2147483648 after=0 in=x:f32:4",
        "expect=E_ATTR before=1 after=1 mode=other in=x:f32:4",
        "expect=E_RANGE before=1 after=1 mode=wrap in=x:f32:0",
        "expect=E_RANGE before=1 after=1 mode=edge in=x:f32:2x0",
        "expect=E_TOO_LARGE before=2147483647 after=1 in=x:f32:4",
        "expect=E_DTYPE before=1 after=1 in=x:u8:4:bytes",
    };
    for (size_t m = 0; m < COUNT(modes); m++)
        for (size_t i = 0; i < COUNT(every_mode); i++)
            case_add(list, "pad mode=%s %s", modes[m], every_mode[i]);
    case_add_all(list, "pad", others, COUNT(others));
}

static void generate_adjoints(case_list *list)
{
    static const char *const every_mode[] = {
        "before=2 extent=5 in=dy:f32:9",
        "axis=1 before=1 extent=4 in=dy:f32:3x9x5",
        "axis=0 before=7 extent=3 in=dy:f32:20x3",
        "axis=-1 before=-2 extent=9 in=dy:f32:2x6",
        "before=5 extent=1 in=dy:f32:9x2",
        "before=3 extent=2 in=dy:c64:9x2",
        "before=40000 extent=2 in=dy:f32:70001",
        "before=1 extent=4 shift=1 in=dy:f32:9x3",
        "before=1 extent=4 in=dy:f32:0",
        "axis=1 before=3 extent=100 in=dy:f32:129x107",
        "expect=E_RANGE before=1 extent=0 in=dy:f32:3",
        "expect=E_ATTR before=1 extent=-1 in=dy:f32:3",
        "expect=E_ATTR before=2147483648 extent=1 in=dy:f32:3",
        "expect=E_AXIS before=1 extent=1 in=dy:f32:scalar",
        "expect=E_AXIS axis=1 before=1 extent=1 in=dy:f32:3",
    };
    for (size_t m = 1; m < COUNT(modes); m++)
        for (size_t i = 0; i < COUNT(every_mode); i++)
            case_add(list, "pad_backward mode=%s %s", modes[m], every_mode[i]);
    case_add(list, "pad_backward expect=E_ATTR before=1 extent=1 in=dy:f32:3");
}

static void generate_slices(case_list *list)
{
    static const char *const rests[] = {
        "in=x:f32:scalar",
        "in=x:f32:3x4",
        "starts=1 stops=5 in=x:f32:7:special",
        "starts=1 stops=6 steps=2 in=x:f32:7",
        "starts=0 stops=last steps=3 in=x:f32:7",
        "starts=last stops=first steps=-1 in=x:f32:7",
        "starts=-2 stops=first steps=-2 in=x:f32:7",
        "starts=5 stops=1 steps=-3 in=x:f32:7",
        "starts=-3 stops=-1 in=x:f32:7",
        "starts=-100 stops=100 in=x:f32:7",
        "starts=100 stops=-100 steps=-1 in=x:f32:7",
        "starts=5 stops=2 in=x:f32:7",
        "starts=2 stops=5 steps=-1 in=x:f32:7",
        "starts=7 stops=9 in=x:f32:7",
        "starts=0,1 stops=2,4 in=x:f32:3x5",
        "starts=1,0 stops=3,5 in=x:f32:4x5",
        "starts=2,1 stops=3,4 in=x:f32:4x5",
        "starts=0,last stops=last,first steps=2,-2 in=x:f32:5x6",
        "starts=0,0,1 stops=last,last,last steps=1,2,1 in=x:f32:3x5x4",
        "starts=0,2,first stops=last,last,last steps=2,1,3 in=x:f32:4x5x9",
        "starts=1,first stops=last,last steps=1,4 in=x:f32:3x16",
        "starts=3,first stops=first,last steps=-1,1 in=x:f32:5x8",
        "starts=0,4 stops=8,12 in=x:f32:8x16",
        "starts=0,1 stops=8,9 in=x:f32:8x16",
        "starts=1,0,0 stops=9,40,40 steps=2,1,1 turned=1 in=x:f32:9x40x40",
        "starts=0,1 stops=2,3 in=x:c64:3x4",
        "starts=last,0 stops=first,last steps=-1,2 in=x:c64:3x4",
        "starts=1 stops=last steps=2 in=x:i32:9:integers",
        "starts=1 stops=last steps=2 in=x:bool:9:bool",
        "starts=1 stops=last steps=2 in=x:f16:9",
        "starts=0 stops=last steps=2 shift=1 in=x:f32:6x3",
        ("starts=0,0,0,0,0,0,0,0 stops=2,1,2,1,2,1,2,2 steps=1,1,2,1,1,1,2,1 "
         "in=x:f32:2x2x2x2x2x2x2x3"),
        "starts=0 stops=3 steps=9223372036854775807 in=x:f32:7",
        "starts=6 stops=0 steps=-9223372036854775807 in=x:f32:7",
        "starts=0 stops=last in=x:f32:0x3",
        "starts=last stops=first steps=-1 in=x:f32:0",
        "starts=0,0 stops=300,700 steps=1,2 in=x:f32:300x701",
        "starts=299,3 stops=first,650 steps=-2,1 in=x:f32:300x701",
        "expect=E_ATTR starts=0,0 stops=1,1 in=x:f32:7",
        "expect=E_ATTR starts=0 stops=1 steps=0 in=x:f32:7",
        "expect=E_ATTR starts=0 stops=1 steps=first in=x:f32:7",
        "expect=E_ATTR starts=0 stops=1 in=x:f32:scalar",
        "expect=E_DTYPE starts=0 stops=4 in=x:u8:8:bytes",
    };
    case_add_all(list, "slice", rests, COUNT(rests));
}

static void generate_turns(case_list *list)
{
    static const char *const lines[] = {
        "roll in=x:f32:scalar",
        "roll in=x:f32:3x4",
        "roll axes=0 shifts=1 in=x:f32:1",
        "roll axes=0 shifts=1 in=x:f32:7:special",
        "roll axes=0 shifts=-3 in=x:f32:7",
        "roll axes=0 shifts=7 in=x:f32:7",
        "roll axes=0 shifts=9223372036854775807 in=x:f32:7",
        "roll axes=0 shifts=-9223372036854775807 in=x:f32:7",
        "roll axes=0 shifts=2 in=x:f32:5x3",
        "roll axes=1 shifts=4 in=x:f32:5x16",
        "roll axes=-1 shifts=1 in=x:f32:5x16",
        "roll axes=0,1 shifts=1,-2 in=x:f32:4x5",
        "roll axes=1,1,0 shifts=3,3,1 in=x:f32:4x5",
        "roll axes=0,2 shifts=1,2 in=x:f32:3x4x5",
        "roll axes=0,1 shifts=1,2 in=x:c64:3x4",
        "roll axes=0 shifts=1 in=x:bool:5:bool",
        "roll axes=0 shifts=1 in=x:bf16:5",
        "roll axes=0 shifts=2 shift=1 in=x:f32:6x3",
        "roll axes=1 shifts=2 turned=1 in=x:f32:4x3x5",
        "roll axes=0,1,2,3,4,5,6,7 shifts=1,1,1,1,1,1,1,1 in=x:f32:2x2x2x3x2x2x2x3",
        "roll axes=0,1 shifts=17,333 in=x:f32:300x701",
        "roll axes=0 shifts=1 in=x:f32:0x3",
        "roll expect=E_AXIS axes=2 shifts=1 in=x:f32:3x4",
        "roll expect=E_AXIS axes=0 shifts=1 in=x:f32:scalar",
        "roll expect=E_DTYPE axes=0 shifts=1 in=x:i8:4:bytes",
        "tile in=x:f32:scalar",
        "tile repeats=3 in=x:f32:scalar",
        "tile repeats=2,3 in=x:f32:scalar",
        "tile repeats=1 in=x:f32:5",
        "tile repeats=3 in=x:f32:5:special",
        "tile repeats=3 in=x:f32:2x5",
        "tile repeats=2,1 in=x:f32:2x5",
        "tile repeats=2,3 in=x:f32:2x8",
        "tile repeats=2,2,2 in=x:f32:3x5",
        "tile repeats=2,1,3 in=x:f32:2x3x4",
        "tile repeats=0,2 in=x:f32:2x3",
        "tile repeats=4 in=x:f32:3x0",
        "tile repeats=2,2 in=x:c64:3x2",
        "tile repeats=2 in=x:i32:3:integers",
        "tile repeats=2 shift=1 in=x:f32:3x4",
        "tile repeats=2,2,2,2,2,2,2,2 in=x:f32:2x1x3",
        "tile repeats=3,1,2,1,3,1,2 in=x:f32:2x2x2x2x2x2x2",
        "tile repeats=7,3 in=x:f32:129x107",
        "tile repeats=1000,1 in=x:f32:1x64",
        "tile expect=E_ATTR repeats=-1 in=x:f32:3",
        "tile expect=E_ATTR repeats=1,1,1,1,1,1,1,1,1 in=x:f32:3",
        "tile expect=E_TOO_LARGE repeats=4611686018427387904 in=x:f32:3",
        "tile expect=E_TOO_LARGE repeats=1000000000 in=x:f32:3",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_pads(list);
    generate_adjoints(list);
    generate_slices(list);
    generate_turns(list);
}

static const char *const rows[] = {"pad", "pad_backward", "slice", "roll", "tile", NULL};

const case_family array_layout_cases = {.rows = rows, .build = build, .generate = generate};
