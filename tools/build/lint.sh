#!/bin/bash
# Checks formatting, layers, size limits, SPIR-V, headers, and static analysis. Prints each finding; exits 1 if there is one.
set -u
BUILD=${BUILD:-build}
failures=0
complain() { echo "lint: $*"; failures=$((failures + 1)); }

rooms='include runtime glsl tools test'
sources=$(find $rooms -name '*.[ch]' | sort)
if command -v clang-format >/dev/null; then
    for f in $sources; do
        clang-format --dry-run -Werror "$f" >/dev/null 2>&1 || complain "$f: not formatted (make format)"
    done
fi

# A layer may include only itself and the layers below it: base <- kernel, graph <- op <- rewrite, plan (which do not know each
# other) <- program <- exec; base, kernel <- spirv <- vk <- program. Layers that fill in dispatches also see args/ (in glsl/) and constants/
# (generated). Models are built with public calls alone, so that layer sees only base.
allowed() {
    case $1 in
    base) echo base ;;
    kernel) echo "base kernel" ;;
    graph) echo "base graph" ;;
    op) echo "base kernel args constants graph op" ;;
    plan) echo "base kernel graph op plan" ;;
    rewrite) echo "base kernel args constants graph op rewrite" ;;
    spirv) echo "base kernel spirv" ;;
    vk) echo "base kernel args constants spirv vk" ;;
    program) echo "base kernel args constants graph op rewrite plan spirv vk program" ;;
    exec) echo "base kernel args constants graph op rewrite plan spirv vk program exec" ;;
    model) echo "base args/format.def model" ;;
    esac
}
for layer in base kernel graph op plan rewrite spirv vk program exec model; do
    for f in $(find runtime/$layer -name '*.[ch]'); do
        for included in $(sed -n 's/^#include "\([a-z_/]*\/[a-z_.]*\)".*/\1/p' "$f"); do
            ok=
            for a in $(allowed $layer); do [[ $included == "$a" || $included == "$a"/* ]] && ok=1; done
            [[ $ok ]] || complain "$f includes $included, which is above its layer"
        done
    done
done
# A folder of op families may include only itself, op/, choice/ and the folders before it in this list.
before='choice'
for folder in movement random compose elementwise rows matmul packed attention conv array image splat spectral neighbours sequence train; do
    before="$before $folder"
    for f in runtime/op/$folder/*.[ch]; do
        for used in $(sed -n 's/^#include "op\/\([a-z_]*\)\/.*/\1/p' "$f"); do
            [[ " $before " == *" $used "* ]] || complain "$f includes from op/$used, which is no folder below its own"
        done
    done
    [[ -d runtime/op/$folder ]] || complain "runtime/op/$folder: no such folder; this list has them from the bottom up"
done
# Files directly in op/ are below all families. For rewrites, row_matrix.c knows attributes of some, and shorten.c adds keep_first.
for f in runtime/op/*.[ch]; do
    [[ $f == runtime/op/row_matrix.c || $f == runtime/op/shorten.c ]] && continue
    for used in $(sed -n 's/^#include "op\/\([a-z_]*\)\/.*/\1/p' "$f"); do
        [[ $used == choice ]] || complain "$f includes from op/$used, which is above it"
    done
done
for folder in runtime/op/*/; do
    [[ " $before " == *" $(basename "$folder") "* ]] || complain "$folder: put it into the list of folders, from the bottom up"
done
# Inside a folder, files form a stack, too: objects must not call each other in a circle.
circles=$(BUILD=$BUILD tools/build/circles.sh runtime/{base,kernel,graph,op,plan,rewrite,spirv,vk,program,exec,model} runtime/op/*/) || complain "$circles"
# The functions of an op family are named <family>_<member>. They stand in the order of the members in op.h, and so do the members
# of the struct. For functions, only `lower`, `host`, `indices` and `describe` part the file: earlier members stand before them.
order() {
    awk 'FNR == 1 { file++ }
        file == 1 && /^typedef struct op_family/ { inside = 1 }
        file == 1 && /^} op_family;/ { inside = 0 }
        file == 1 && inside && match($0, /\(\*[a-z_]+\)\(/) { place[substr($0, RSTART + 2, RLENGTH - 4)] = ++members }
        file == 1 && inside && match($0, /^ +(bool|uint32_t|size_t|const char \*)[ *]*[a-z_]+;/) {
            name = substr($0, RSTART, RLENGTH - 1); sub(/.*[ *]/, "", name); place[name] = ++members }
        file == 1 { next }
        /^[a-z].*[a-z0-9_]+\(/ && !/;$/ { match($0, /[a-z0-9_]+\(/); at[substr($0, RSTART, RLENGTH - 1)] = FNR }
        /const op_family [a-z0-9_#]+ = [{]/ { family = $3; sub(/_family$/, "", family); last = latest = before = 0 }
        family { for (rest = $0; match(rest, /\.[a-z_]+ = [a-z0-9_]+/); rest = substr(rest, RSTART + RLENGTH)) {
            split(substr(rest, RSTART + 1, RLENGTH - 1), part, " = ")
            if (part[1] == part[2]) print FILENAME ": " part[2] " is not named after its family"
            if (place[part[1]] < before) print FILENAME ": " family "_family has ." part[1] " too late; op.h has the order"
            before = place[part[1]]
            if (part[1] ~ /^(lower|host|indices|describe)$/) last = latest
            if (part[2] != family "_" part[1] || !(part[2] in at)) continue
            if (at[part[2]] < last) print FILENAME ": " part[2] " stands too early; op.h has the order"
            if (at[part[2]] > latest) latest = at[part[2]] } }
        /};/ { family = "" }' runtime/op/op.h "$@"
}
for f in $(grep -lE '^ *const op_family \w+.* = [{]' $(find runtime/op -name '*.c')); do
    found=$(order "$f")
    [[ $found ]] && complain "$found"
done
for f in $(find include runtime/{base,kernel,graph,op,rewrite,plan,spirv} -type f); do
    grep -q '#include <vulkan' "$f" && complain "$f includes Vulkan headers"
done
# These folders must not name ops, because everything specific to an op is a member of its family.
nameless='base kernel graph plan spirv vk program exec model'
for room in $nameless; do
    grep -rnE '\bOP_[a-z]' runtime/$room && complain "runtime/$room names ops"
done
# An extern name that is not public begins with the name of its layer, its folder, or the first word of its file, so that it can
# be found. Families are the exception.
named='base kernel graph op plan rewrite spirv vk program exec model'
for room in $named; do
    for f in $(find runtime/$room -name '*.c'); do
        folder=$(basename "$(dirname "$f")") file=$(basename "$f" .c)
        [[ $f == *_windows.c ]] && continue # they are built by a cross compiler alone
        stray=$(nm "$BUILD/${f%.c}.o" | awk -v first="^(rlxvk|$room|$folder|${file%%_*})_" \
            '$(NF - 1) ~ /^[A-TV-Z]$/ && $NF !~ first && $NF !~ /_family$/ { printf " %s", $NF }')
        [[ $stray ]] && complain "$f: extern names without a prefix that tells where they are:$stray"
    done
done
for f in $(find runtime -name '*.[ch]' -not -path 'runtime/op/*'); do
    grep -nE 'case OP_' "$f" /dev/null && complain "$f: switch over op kinds outside runtime/op"
done

# Code uses specialization constants by name (constants/, SET_CONSTANTS), never by index.
mapfile -t found < <(find runtime tools/bench tools/cli tools/conform test -name '*.[ch]' -exec \
    grep -nE '(\.|->)constants(\[[0-9]| = \{[^[])' {} +)
for f in "${found[@]}"; do complain "$f: literal number of a specialization constant"; done
# A public name is an op of op.def, a composite builder, an object and a property of it, or a verb and a part of an executable.
# So the name of a new op never collides with a function that is not an op.
nouns='struct values context model tokenizer language symbol dim graph tensor executable device status dtype precision shape quant signal custom version'
verbs='compile set_symbol_example bind_symbols clone run submit wait last_error first_bad_node first_wrong_node set_param set_param_bytes set_param_typed set_params clear_param read_param read_param_typed read_param_bytes save_params load_params
    bind_handle bind_handle_as unbind_handle has_handle read_handle read_handle_as read_fed_output read_fed_output_as set_handle_feed set_handle_feed_prefix
    clear_handle_feed register_row_feed
    feed_rows read_output_row read_output_row_as set_rng get_rng set_active_extent clear_active_extent extent_supported'
builders='matmul_with narrow_with attention_with_lse call if while scan grad checkpoint state adamw_all sgd_all lion_all gradient_clip rng_uniform_like rng_normal_like dot_general einsum log_sum_exp l1_norm l2_norm arange triu tril bitwise_not scalar full leaky_relu prelu clip lora_matmul fused_attention_block
    fused_transformer_layer fft_axis fftn pad_last fft_split fft_merge fft_real rfft irfft ifft_real frames stft psd psd_real fft_conv1d'
builders="$builders pool_lp global_pool_max global_pool_mean global_pool_lp adaptive_pool_mean adaptive_pool_max pool_max_with_indices
    pool_max_unpool conv_padded conv_same conv_transpose deform_conv instance_norm"
builders="$builders resample mfcc pairwise_distance umap_knn_backward cumsum_backward welch_peaks log_mel_backward istft"
rows=$(sed -nE 's/^(OP|[A-Z]+_ACTIVATION\([0-9]+, [A-Z0-9_]+)[(,] *([a-z0-9_]*),.*/\2/p' runtime/op/op.def glsl/args/activation.def)
known=" $(echo $verbs $builders $rows) "
for name in $(sed -n 's/^\([a-zA-Z].*[ *]\)\{0,1\}rlxvk_\([a-z0-9_]*\)(.*/\2/p' include/*.h); do
    [[ $known == *" $name "* || " $nouns " == *" ${name%%_*} "* ]] || complain "rlxvk_$name: neither an op's row nor an object's name first"
done

# The locale of a host program must not change input and output, so these functions are replaced by those of base/text.c and the room of the system.
mapfile -t found < <(find runtime tools -name '*.[ch]' ! -path runtime/base/text.c ! -path runtime/base/system_windows.c ! -path 'tools/build/*' -exec \
    grep -nE '\b(is(alpha|alnum|digit|space|upper|lower|print|punct)|to(lower|upper)|strn?casecmp|strto(d|f|ld)|atof|setlocale|vsnprintf|vfprintf) *\(' {} +)
for f in "${found[@]}"; do complain "$f: depends on the locale"; done

# Some C libraries get these functions wrong, and host references depend on them.
mapfile -t found < <(find runtime tools glsl/args \( -name '*.[ch]' -o -name '*.def' \) ! -path 'runtime/base/numeric.*' ! -path 'tools/build/*' -exec \
    awk '{ code = $0; sub(/\/\*.*/, "", code) }
        code !~ /^ *\*/ && code ~ /(^|[^_a-z0-9>.])(sinf?|cosf?|sincosf?|l?l?roundf?|c(exp|sin|cos)f?) *\(/ { print FILENAME ":" FNR ": " $0 }' {} +)
for f in "${found[@]}"; do complain "$f: base/numeric.h has a function that is right on every C library"; done

# Only these rooms know the operating system: runtime/base/system* for all, tools/system for what only the program does. So only
# they include its headers, ask which system it is, and read the environment, which a set-user-ID program must not use.
room='^(runtime/base/system[a-z_]*\.[ch]|tools/system/[a-z_]*\.[ch])$'
outside=$(find runtime tools -name '*.[ch]' ! -path 'tools/build/*' | grep -vE "$room" | sort)
system_headers='unistd|pthread|threads|dlfcn|fcntl|signal|locale|xlocale|langinfo|dirent|poll|spawn|sched|termios|ftw|glob|libgen|link|pwd|syslog|semaphore|aio|windows|winsock2|io|direct|process|conio|shlobj|psapi|sys/[a-z]+|arpa/[a-z]+|netinet/[a-z]+|netdb|mach/[a-z_]+|linux/[a-z_]+'
mapfile -t found < <(grep -nE "^ *# *include *<($system_headers)\.h>" $outside)
for f in "${found[@]}"; do complain "$f: a header of the operating system; runtime/base/system.h has what is needed, or gets it"; done
mapfile -t found < <(grep -nE '\b(_WIN32|_WIN64|__MINGW32__|_MSC_VER|__linux__|__APPLE__|__ANDROID__|__unix__)\b' $outside)
for f in "${found[@]}"; do complain "$f: asks which system it is, outside of runtime/base/system* and tools/system"; done
mapfile -t found < <(grep -nE '\b((secure_|_w)?getenv|setenv|unsetenv|putenv|clock_gettime|nanosleep|usleep|localtime(_r|_s)?|gmtime_[rs]|fdopen|fileno|isatty|popen|access|realpath|mkdtemp|mkstemp|tmpfile|getline|fopen) *\(|\benviron\b' $outside)
for f in "${found[@]}"; do complain "$f: calls the operating system past base/system.h"; done

# What clang-cl takes, too: a compiler's own calls, types and attributes, and <stdatomic.h>, stand in one header each.
mapfile -t found < <(find runtime tools -name '*.[ch]' ! -path 'tools/build/*' ! -path runtime/base/compiler.h -exec \
    grep -nE '__(builtin|atomic|sync)_|__int128|__attribute__|\({ ' {} +)
for f in "${found[@]}"; do complain "$f: an extension of the compiler; base/compiler.h and base/atomic.h have what is needed"; done
mapfile -t found < <(find runtime tools -name '*.[ch]' ! -path runtime/base/atomic.h -exec grep -n '<stdatomic.h>' {} +)
for f in "${found[@]}"; do complain "$f: include base/atomic.h instead"; done

kernels=$(find glsl -name '*.comp' -o -name '*.glsl' | sort)
for f in $sources $kernels; do
    lines=$(wc -l <"$f")
    ((lines <= 800)) || complain "$f: $lines lines (800 at most)"
    awk -v f="$f" 'length($0) > 100 { print f ":" NR ": " length($0) " columns"; bad = 1 } END { exit bad }' "$f" || failures=$((failures + 1))
done
# A function begins at a brace in column 0. This is the same in GLSL, where main() counts, too.
for f in $(grep '\.c$' <<<"$sources") $kernels; do
    awk -v f="$f" '/^\{/ { start = NR } /^\}$/ { if (start && NR - start - 1 > 80) { print f ":" start ": function of " NR - start - 1 " lines"; bad = 1 } start = 0 } END { exit bad }' "$f" || failures=$((failures + 1))
done

# Python has the same limits. The cache of compiled files goes nowhere. Older files have lines of up to 150 columns.
if command -v python3 >/dev/null; then
    for f in $(find $rooms -name '*.py' | sort); do
        lines=$(wc -l <"$f")
        ((lines <= 800)) || complain "$f: $lines lines (800 at most)"
        python3 -c 'import sys; compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec")' "$f" || complain "$f: no Python"
    done
fi
wide=$(find tools/python test/python -name '*.py' -exec awk 'length($0) > 100 { print FILENAME ":" FNR ": " length($0) " columns" }' {} +)
[[ $wide ]] && complain "$wide"

# Recipes for packages that name a version name that of the headers.
version=$(awk '/define RLXVK_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $3; dot = "." }' include/rlxvk.h)
for f in tools/package/arch/PKGBUILD tools/package/vcpkg/rlxvk/vcpkg.json; do
    grep -qE "^(pkgver=| *\"version\": \")$version\"?,?\$" "$f" || complain "$f: not of version $version"
done

BUILD=$BUILD tools/build/readme.sh --check || failures=$((failures + 1))
# Links and paths in documents must exist.
tools/build/links.sh || failures=$((failures + 1))

for header in include/*.h; do
    name=$(basename "$header")
    echo "#include <$name>" | ${CC:-gcc} -std=c11 -Wall -Wextra -Werror -pedantic -Iinclude -fsyntax-only -x c - || complain "$name alone as C11"
    if command -v g++ >/dev/null; then
        echo "#include <$name>" | g++ -std=c++17 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ - || complain "$name alone as C++17"
    fi
done

if command -v spirv-val >/dev/null; then
    for module in build/spv/*.spv; do
        # A module from a newer compiler needs a newer validator, which tools/build/spirv.sh update runs.
        kernel=$(basename "${module%%.*}")
        grep -q "^$kernel " spv/MANIFEST && continue
        spirv-val --target-env vulkan1.2 "$module" || complain "$module: spirv-val"
    done
fi

# GCC does not see that a loop may have no round, after which a status is returned that was never set. Clang does.
if command -v clang >/dev/null; then
    unset_variables=$(find runtime tools -name '*.c' ! -name '*_windows.c' | xargs -P 2 -n 32 clang -fsyntax-only -std=c11 -D_GNU_SOURCE -Iinclude -Iruntime -Iglsl -Itest -Itools -I"$BUILD/generated" \
        -Wno-everything -Wuninitialized -Wsometimes-uninitialized -Wconditional-uninitialized 2>&1 | grep -E 'warning|error')
    [[ $unset_variables ]] && complain "$unset_variables"
fi

if command -v cppcheck >/dev/null; then
    cppcheck -q --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem \
        --suppress=unusedStructMember --suppress=legacyUninitvar --suppress=uninitvar:tools/bench/bench.c --error-exitcode=1 -Iinclude -Iruntime -Itools -Itest -Iglsl -Ibuild/generated -j 2 runtime tools || complain "cppcheck"
fi

((failures == 0)) && echo "lint: clean" || echo "lint: $failures findings"
exit $((failures != 0))
