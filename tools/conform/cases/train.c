/*
 * Cases of optimizers. Keys: lr, beta1, beta2, eps, weight_decay, momentum, nesterov=1, step.
 * schedule and scale are optional inputs. in_place=1 writes p, m and v over their operands.
 * result=m or v returns that instead of p.
 *
 * Cases of accumulate: in=sum;t;keep. If t is absent, t is the sum itself. shift=n drops the first
 * n rows of t by a view.
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor optional(const case_spec *s, const rlxvk_tensor *inputs, const char *name)
{
    for (size_t i = 0; i < s->input_count; i++)
        if (strcmp(s->inputs[i].name, name) == 0)
            return inputs[i];
    return RLXVK_NONE;
}

static rlxvk_tensor accumulate(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor sum = case_tensor(s, inputs, "sum"), t = optional(s, inputs, "t");
    t = case_shifted(g, s, "shift", t.id ? t : sum);
    return rlxvk_accumulate(g, sum, t, case_tensor(s, inputs, "keep"));
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "accumulate") == 0)
        return accumulate(g, s, inputs);
    rlxvk_tensor p = case_tensor(s, inputs, "p"), d = case_tensor(s, inputs, "g");
    rlxvk_tensor m = case_tensor(s, inputs, "m"), results[3] = {RLXVK_NONE, m, RLXVK_NONE};
    rlxvk_optimizer_data data = {optional(s, inputs, "schedule"), optional(s, inputs, "scale")};
    bool in_place = case_integer(s, "in_place", 0) != 0;
    rlxvk_tensor *out = in_place ? NULL : results + 1;
    float rate = (float)case_real(s, "lr", 1e-3), decay = (float)case_real(s, "weight_decay", 0);
    float beta1 = (float)case_real(s, "beta1", 0.9), beta2 = (float)case_real(s, "beta2", 0.999);
    if (strcmp(s->row, "adamw") == 0) {
        rlxvk_tensor v = case_tensor(s, inputs, "v");
        rlxvk_adamw_options options = {rate,  beta1,
                                       beta2, (float)case_real(s, "eps", 1e-8),
                                       decay, (uint32_t)case_integer(s, "step", 1)};
        results[0] = rlxvk_adamw(g, p, d, m, v, &options, &data, out);
        results[2] = in_place ? v : results[2];
    } else if (strcmp(s->row, "sgd") == 0) {
        rlxvk_sgd_options options = {rate, (float)case_real(s, "momentum", 0.9), decay,
                                     case_integer(s, "nesterov", 0) != 0};
        results[0] = rlxvk_sgd(g, p, d, m, &options, &data, out);
    } else {
        rlxvk_lion_options options = {rate, beta1, beta2, decay};
        results[0] = rlxvk_lion(g, p, d, m, &options, &data, out);
    }
    const char *result = case_word(s, "result", "p");
    return results[strcmp(result, "p") == 0 ? 0 : strcmp(result, "m") == 0 ? 1 : 2];
}

static void generate_sums(case_list *list)
{
    static const char *const shapes[] = {"scalar", "1",     "0",    "3",    "4",      "5",
                                         "2x3x5",  "2x0x3", "1023", "1027", "129x64", "70001"};
    static const char *const keeps[] = {"0", "-0.0", "1", "0.5", "-2", "1e-30", "inf", "nan"};
    static const char *const fills[] = {"special", "large", "constant:nan", "constant:inf", "zero"};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        case_add(list, "accumulate in=sum:f32:%s;t:f32:%s;keep:f32:1:one", shapes[i], shapes[i]);
        case_add(list, "accumulate in=sum:f32:%s;t:f32:%s;keep:f32:scalar:unit", shapes[i],
                 shapes[i]);
    }
    for (size_t k = 0; k < COUNT(keeps); k++)
        for (size_t i = 0; i < COUNT(fills); i++) {
            case_add(list, "accumulate in=sum:f32:261:%s;t:f32:261;keep:f32:1:constant:%s",
                     fills[i], keeps[k]);
            case_add(list, "accumulate in=sum:f32:261;t:f32:261:%s;keep:f32:1x1:constant:%s",
                     fills[i], keeps[k]);
        }
    for (int shift = 0; shift < 5; shift++)
        case_add(list, "accumulate shift=%d in=sum:f32:66;t:f32:%d;keep:f32:1:one", shift,
                 66 + shift);
    case_add(list, "accumulate in=sum:f32:66;t:f16:66;keep:i32:1:one");
    case_add(list, "accumulate expect=E_SHAPE in=sum:f32:3;t:f32:4;keep:f32:1");
    case_add(list, "accumulate expect=E_SHAPE in=sum:f32:3;t:f32:3;keep:f32:2");
    case_add(list, "accumulate expect=E_DTYPE in=sum:f16:3;t:f32:3;keep:f32:1");
    case_add(list, "accumulate expect=E_ATTR in=sum:f32:3;keep:f32:1");
    case_add(list, "accumulate expect=E_DTYPE in=sum:f32:3;t:c64:3;keep:f32:1");
}

/* NaN and infinities, and the limits of f32, in each operand and in all of them; a gradient and a
 * direction of exactly 0; steps as large as the parameter. */
static void generate_extremes(case_list *list)
{
    static const char *const optimizers[] = {"adamw step=2 weight_decay=0.01",
                                             "adamw step=3 eps=1e-40 beta2=0.5",
                                             "sgd weight_decay=0.01 nesterov=1",
                                             "sgd momentum=0",
                                             "lion weight_decay=0.1 beta2=0.99",
                                             "lion"};
    static const char *const fills[] = {"special", "large", "zero", "constant:3.4028234e38",
                                        "constant:-1e-40"};
    static const char *const results[] = {"p", "m", "v"};
    for (size_t o = 0; o < COUNT(optimizers); o++)
        for (size_t f = 0; f < COUNT(fills); f++)
            for (unsigned at = 1; at < 16; at += at < 8 ? at : 7) {
                bool two = strncmp(optimizers[o], "adamw", 5) == 0;
                const char *fill[4];
                for (unsigned k = 0; k < 4; k++)
                    fill[k] = at >> k & 1 ? fills[f] : k == 3 ? "positive" : "uniform";
                for (size_t r = 0; r < (two ? 3u : 2u); r++)
                    case_add(list,
                             two ? "%s result=%s in=p:f32:203:%s;g:f32:203:%s;m:f32:203:%s;"
                                   "v:f32:203:%s"
                                 : "%s result=%s in=p:f32:203:%s;g:f32:203:%s;m:f32:203:%s",
                             optimizers[o], results[r], fill[0], fill[1], fill[2], fill[3]);
            }
    for (size_t o = 0; o < COUNT(optimizers); o++)
        case_add(list,
                 strncmp(optimizers[o], "adamw", 5) == 0
                     ? "%s in=p:f32:7;g:f32:7;m:f32:7;v:f32:7:positive;scale:f32:1:constant:nan"
                     : "%s in=p:f32:7;g:f32:7;m:f32:7;scale:f32:1:constant:nan",
                 optimizers[o]);
    case_add(list, "lion lr=0.5 in=p:f32:64;g:f32:64:zero;m:f32:64:zero");
    case_add(list,
             "lion lr=0.5 beta1=0.5 in=p:f32:64;g:f32:64:constant:1.5;m:f32:64:constant:-1.5");
    case_add(list, "lion lr=0.5 beta1=1e-40 in=p:f32:64;g:f32:64:zero;m:f32:64");
    case_add(list, "lion lr=0.5 beta1=0.5 in=p:f32:640;g:f32:640:integers;m:f32:640:integers");
    case_add(list, "adamw lr=0.5 step=3 in=p:f32:640:unit;g:f32:640:unit;m:f32:640:unit;"
                   "v:f32:640:positive");
    case_add(list, "adamw lr=1 step=1 in=p:f32:640:one;g:f32:640;m:f32:640:zero;v:f32:640:zero");
}

static void generate(case_list *list)
{
    generate_sums(list);
    static const char *const rows[] = {"adamw weight_decay=0.01 step=3",
                                       "adamw eps=1e-3 step=1 beta1=1e-40 beta2=0.5",
                                       "adamw step=1000000 weight_decay=0.1",
                                       "sgd weight_decay=0.01",
                                       "sgd nesterov=1 lr=0.1",
                                       "sgd momentum=0 lr=0.5",
                                       "lion weight_decay=0.1 beta2=0.99"};
    static const char *const averages[] = {"m", "v"};
    static const char *const shapes[] = {"scalar", "1", "0", "3", "2x3x5", "1027", "129x64"};
    for (size_t r = 0; r < COUNT(rows); r++) {
        bool two = strncmp(rows[r], "adamw", 5) == 0;
        for (size_t i = 0; i < COUNT(shapes); i++) {
            const char *n = shapes[i];
            case_add(list,
                     two ? "%s in=p:f32:%s;g:f32:%s;m:f32:%s:unit;v:f32:%s:positive"
                         : "%s in=p:f32:%s;g:f32:%s;m:f32:%s:unit",
                     rows[r], n, n, n, n);
            case_add(list,
                     two ? "%s in_place=1 in=p:f32:%s;g:f32:%s:unit;m:f32:%s:unit;v:f32:%s:positive"
                         : "%s in_place=1 in=p:f32:%s;g:f32:%s:unit;m:f32:%s:unit",
                     rows[r], n, n, n, n);
        }
        case_add(list,
                 two ? "%s in_place=1 result=m in=p:f32:517;g:f32:517;m:f32:517:zero;v:f32:517:zero"
                     : "%s in_place=1 result=m in=p:f32:517;g:f32:517;m:f32:517:zero",
                 rows[r]);
        for (size_t i = 0; i < COUNT(averages) - !two; i++)
            case_add(list,
                     two ? "%s result=%s in=p:f32:513;g:f32:513;m:f32:513:unit;v:f32:513:positive"
                         : "%s result=%s in=p:f32:513;g:f32:513;m:f32:513:unit",
                     rows[r], averages[i]);
        case_add(list,
                 two ? "%s in=p:f32:64;g:f32:64;m:f32:64;v:f32:64:positive;"
                       "schedule:f32:3:positive;scale:f32:1:positive"
                     : "%s in=p:f32:64;g:f32:64;m:f32:64;schedule:f32:1:positive;"
                       "scale:f32:1:positive",
                 rows[r]);
        case_add(list,
                 two ? "%s in_place=1 in=p:f32:64;g:f32:64;m:f32:64;v:f32:64:positive;"
                       "scale:f32:scalar:positive"
                     : "%s in_place=1 in=p:f32:64;g:f32:64;m:f32:64;scale:f32:scalar:positive",
                 rows[r]);
    }
    generate_extremes(list);
    case_add(list, "adamw in_place=1 result=v step=2 in=p:f32:9x7;g:f32:9x7:zero;m:f32:9x7:zero;"
                   "v:f32:9x7:zero");
    case_add(list, "adamw step=2 in=p:f32:4099:large;g:f32:4099;m:f32:4099;v:f32:4099:positive");
    case_add(list, "adamw expect=E_ATTR step=0 in=p:f32:3;g:f32:3;m:f32:3;v:f32:3");
    case_add(list, "adamw expect=E_SHAPE in=p:f32:3;g:f32:4;m:f32:3;v:f32:3");
    case_add(list, "adamw expect=E_ATTR beta1=1 in=p:f32:3;g:f32:3;m:f32:3;v:f32:3");
    case_add(list, "adamw expect=E_SHAPE in=p:f32:3;g:f32:3;m:f32:3;v:f32:3;schedule:f32:2");
    case_add(list, "sgd expect=E_DTYPE in_place=1 in=p:f16:3;g:f32:3;m:f32:3");
    case_add(list, "lion expect=E_ATTR lr=-1 in=p:f32:3;g:f32:3;m:f32:3");
    case_add(list, "adamw step=1 in=p:f32:67;g:f32:67:range:1e20:3e20;m:f32:67:zero;v:f32:67:zero");
    case_add(list, "adamw step=2 weight_decay=0.1 in=p:f32:67;g:f32:67:range:-3e20:3e20;"
                   "m:f32:67:range:-1e19:1e19;v:f32:67:range:1e36:3e37");
    case_add(list, "adamw step=1 in=p:f32:67;g:f32:67:range:-1e-25:1e-25;m:f32:67:zero;"
                   "v:f32:67:zero");
}

static const char *const rows[] = {"adamw", "sgd", "lion", "accumulate", NULL};

const case_family train_cases = {rows, build, generate};
