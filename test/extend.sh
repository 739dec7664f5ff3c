#!/bin/bash
# Checks the lists of runtime/ADDING.md: how to add an activation, an op family, a packed format and a kernel variant. It does only what
# they say, on a copy of the tree, and builds that. Then it runs the additions against the host reference on the device at hand. Arguments
# are names of lists: only these are followed. The last line counts.
set -u
. "$(dirname "$0")/check.sh"
lists=${*:-activation op format variant}

wanted() { [[ " $lists " == *" $1 "* ]]; }
fails() { ! "$@"; }
# The files of the lists are compiled without optimizing, because only the build and the results are checked.
build() { make -s -j2 FLAGS_release=-O0 "$1"; }

# Inserts a line before the last one that begins with `mark`. If there is none, fails.
before() {
    local file=$1 mark=$2 line=$3
    awk -v mark="$mark" -v line="$line" '{ lines[NR] = $0; if (index($0, mark) == 1) at = NR }
        END { for (i = 1; i <= NR; i++) { if (i == at) print line; print lines[i] } exit !at }' "$file" >"$work/edited" ||
        { echo "$file: no line begins with $mark"; exit 1; }
    cat "$work/edited" >"$file"
}

# ---- The lists, place by place ----

# squareplus: y = (x + sqrt(x^2 + 4)) / 2. It is curved everywhere, so it needs each step of its list.
add_activation() {
    before glsl/args/activation.def '#undef ACTIVATION' \
        "ROOT_ACTIVATION($(grep -c '_ACTIVATION([0-9]' glsl/args/activation.def), SQUAREPLUS, squareplus, 1.2e-38, 1e-6, 0, \
x > 0 ? x / 2 + hypot(1, x / 2) : 1 / (hypot(1, x / 2) - x / 2), square_plus(x), \
fabs(x) > 1e9 ? x > 0 : 0.5 + x / 4 / hypot(1, x / 2), square_plus_slope(x))"
    before glsl/elementwise/activation.glsl 'float soft_sign_slope(' \
        'float square_plus(float x)
{
    float z = 0.5 * abs(x), root = z < 1e9 ? square_root(fma(z, z, 1.0)) : z;
    return is_nan(x) ? x : x < 0.0 ? divide(1.0, z + root) : z + root;
}

float square_plus_slope(float x)
{
    float z = 0.5 * abs(x), part = z < 1e9 ? divide(z, square_root(fma(z, z, 1.0))) : 1.0;
    return is_nan(x) ? x : x < 0.0 ? 0.5 - 0.5 * part : 0.5 + 0.5 * part;
}
'
    before include/rlxvk_ops.h '} rlxvk_activation;' '    RLXVK_ACTIVATION_SQUAREPLUS,'
    before include/rlxvk_ops.h 'rlxvk_tensor rlxvk_relu(' 'rlxvk_tensor rlxvk_squareplus(rlxvk_graph *g, rlxvk_tensor x);'
    before runtime/op/elementwise/activation_backward.c '    case UNARY_GELU:' \
        '    case UNARY_SQUAREPLUS: /* 1 / (4 s^3), with s = sqrt(1 + x^2 / 4) */
        s = rlxvk_sqrt(g, offset(g, 1, scaled(g, 0.25, rlxvk_mul(g, x, x))));
        return rlxvk_div(g, gradient_scalar(g, 0.25), rlxvk_mul(g, s, rlxvk_mul(g, s, s)));'
}

# pair_sum: y[.., j] = x[.., 2 j] + x[.., 2 j + 1]
add_op() {
    cp "$tree/test/extend/pair_sum.c" runtime/op/rows/pair_sum.c
    cp "$tree/test/extend/pair_sum.comp" glsl/rows/pair_sum.comp
    cp "$tree/test/extend/pair_sum_cases.c" tools/conform/cases/pair_sum.c
    before glsl/args/rows.h '#endif' 'struct pair_sum_args { u32 numel, x_offset, y_offset; };'
    before runtime/op/op.def 'OP(' 'OP(pair_sum, pair_sum, 0, 1, 1, 0, 0)'
    before include/rlxvk_ops_domain.h '#ifdef __cplusplus' 'rlxvk_tensor rlxvk_pair_sum(rlxvk_graph *g, rlxvk_tensor x);'
    before test/support/fuzz_builders.def 'CALL(' 'UNARY(pair_sum)'
}

# Q4_7: as Q4_0, but the codes stand for -7 .. 8
add_format() {
    before glsl/args/format.def '#undef QUANT_FORMAT' \
        'BLOCK_FORMAT(44, Q4_7, 32, 18, true, SMALL, 16, false, HALF(0, d), decode_q4_7, NULL)'
    before include/rlxvk_ops.h '} rlxvk_quant_format;' '    RLXVK_Q4_7 = 44,'
    before runtime/op/packed/quant_format.c 'static void decode_q4_1(' \
        'static void decode_q4_7(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    for (int i = 0; i < 32; i++) {
        y[i] = d * (float)nibble(block[2 + i % 16], i >= 16);
        min_term[i] = -7 * d;
    }
}
'
    before glsl/packed/dequant.glsl 'unit_codes decode_further(' \
        'unit_codes decode_q4_7(uint block, uint u)
{
    uvec4 q = load16(block + 2);
    float d = half_at(block);
    return unit_codes(q & NIBBLES, q >> 4 & NIBBLES, vec2(d), vec2(-7 * d));
}
'
    before glsl/packed/dequant.glsl '    return decode_raw(' \
        '    if (FORMAT == Q4_7)
        return decode_q4_7(block, u);'
}

add_variant() {
    before runtime/op/packed/dequant_choice.c '    {{"staged_128",' \
        '    {{"staged_64", ON_HARDWARE, 0}, true, false, 64, 16, 2, 1, 32},'
}

# ---- The copy ----

mkdir -p "$work/copy/build/test" "$work/copy/test/unit/op" || exit 1
cp -a Makefile glsl include runtime spv tools "$work/copy" && cp -a test/support "$work/copy/test" || exit 1
cp -a test/unit/op/test_{activation,fuzz_builders}.c "$work/copy/test/unit/op" || exit 1
[[ ! -d build ]] || for part in spv spv2c generated runtime tools kernel_table.o; do
    [[ ! -e build/$part ]] || cp -a build/$part "$work/copy/build" || exit 1
done
cd "$work/copy" || exit 1
for list in $lists; do "add_$list" || exit 1; done
check "the tree builds with what was added: $lists" build build/bin/rlxvk
((failed == 0)) || finish

# ---- Tests of the additions, on the device ----

run_ops() { build/bin/rlxvk conform --op "$1"; }
# Runs the cases of an op whose line contains a text, with these options. If none of them passes, fails.
run_cases() {
    local op=$1 text=$2 number out count=0
    shift 2
    for number in $(build/bin/rlxvk conform --op "$op" --list | sed -n "s/^$op \([0-9]*\): .*$text.*/\1/p"); do
        out=$(build/bin/rlxvk conform --op "$op" --case "$number" "$@") || { echo "$out"; return 1; }
        ! grep -q '^1 passed' <<<"$out" || count=$((count + 1))
    done
    ((count))
}
each_variant() { build/bin/rlxvk conform --op "$1" --each-variant --sparse=60 | grep -E "^$2 +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9]* +0 "; }
compiles_without() { ${CC:-cc} -std=c11 -D_GNU_SOURCE -fsyntax-only -I"$tree/include" -Iruntime -Iglsl -Ibuild/generated "$1"; }

unit() { build "build/test/$1" && "build/test/$1"; }

if wanted activation; then
    check "the table of activations with the new one" unit test_activation
    check "cases of the new activation" run_ops squareplus
    check "products with the new activation" run_cases fused_matmul_bias_act activation=squareplus
    check "derivatives of the new activation" run_cases activation_backward kind=squareplus
    check "second derivatives of the new activation" run_cases activation_backward kind=squareplus --gradients
    check "an activation without its id does not build" fails compiles_without runtime/op/activation.c
fi
if wanted op; then
    check "cases of the new op" run_ops pair_sum
    check "random calls of every builder, the new one among them" unit test_fuzz_builders
    check "the new op has a kernel" bash -c 'build/bin/rlxvk ops | grep "^| pair_sum | pair_sum | kernel | yes | 9 "'
fi
if wanted format; then
    check "products with the new format" run_cases dequant_matmul format=Q4_7
    check "rows of the new format" run_cases dequant_gather format=Q4_7
    check "a format without its id does not build" fails compiles_without runtime/op/packed/quant_format.c
fi
if wanted variant; then
    check "cases by the new variant" each_variant dequant_matmul dequant_vector=staged_64
fi
finish
