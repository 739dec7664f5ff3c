# rlxvk: `make help` lists the targets. If the compiler is clang, libFuzzer drives the fuzz targets.
config  ?= $(if $(and $(filter clang%,$(notdir $(CC))),$(filter fuzz fuzzers,$(MAKECMDGOALS))),libfuzzer,release)
# CROSS is the prefix of a cross compiler: x86_64-w64-mingw32-, aarch64-linux-gnu-. Programs that only the build runs come from HOSTCC.
CROSS   ?=
WINDOWS := $(findstring mingw,$(CROSS))
BASE    ?= build
BUILD   ?= $(BASE)$(addprefix /,$(patsubst %-,%,$(CROSS)) $(filter-out release,$(config)))
ifeq ($(origin CC),default)
CC      := $(CROSS)gcc
endif
ifneq ($(CROSS),)
LD      := $(CROSS)ld
AR      := $(CROSS)ar
OBJCOPY := $(CROSS)objcopy
endif
HOSTCC  ?= $(if $(CROSS),gcc,$(CC))
PYTHON  ?= python3
# Unless -j says otherwise, as many jobs as processors. A make that another one starts shares its jobs.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

WARNINGS := -Wall -Wextra -Wstrict-prototypes -Wpointer-arith -Wvla -Wno-missing-field-initializers
FLAGS_release  := -O2 -DNDEBUG
FLAGS_debug    := -O0 -g3
FLAGS_asan     := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
FLAGS_tsan     := -O1 -g -fsanitize=thread
FLAGS_libfuzzer := $(FLAGS_asan) -fsanitize=fuzzer-no-link
FLAGS_coverage := -O0 -g --coverage
MODE     := $(or $(FLAGS_$(config)),$(error config must be release, debug, asan, tsan, libfuzzer or coverage))
# A source archive of `make dist` has what is made from GLSL and headers, and the headers of Vulkan and SPIR-V.
PREBUILT := $(wildcard prebuilt)
GEN      := $(or $(PREBUILT),$(BASE)/generated)
CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Iruntime -Iglsl -Itest -Itools -I$(GEN)
CFLAGS   += -std=c11 $(WARNINGS) $(MODE) -ffp-contract=off $(if $(WINDOWS),,-fPIC)
# On x86 of 32 bits, doubles are doubles: the x87 would compute with more bits. Helpers of position independent code are shared between
# objects by groups, in which names must not become local.
ifneq ($(filter i686%,$(CROSS)),)
CFLAGS   += -msse2 -mfpmath=sse
GROUPS   := $(if $(WINDOWS),,--force-group-allocation)
endif
LDFLAGS  += $(filter -fsanitize=% --coverage,$(MODE))
LDLIBS   += $(if $(WINDOWS),-lm,-ldl -lm -lpthread)
# A cross compiler does not look for headers in /usr/include, where those of Vulkan and SPIR-V are.
HEADERS  := $(if $(PREBUILT),$(PREBUILT)/headers,$(if $(CROSS),$(BASE)/headers))
CPPFLAGS += $(addprefix -isystem ,$(HEADERS))
ifneq ($(WINDOWS),)
CPPFLAGS += -D__USE_MINGW_ANSI_STDIO=1
LDFLAGS  += -static-libgcc -Wl,--stack,8388608
endif

GLSLANG  := $(firstword $(shell command -v glslangValidator glslang 2>/dev/null) glslangValidator)
OPTIMIZE := $(shell command -v spirv-opt 2>/dev/null)
GLSLFLAGS := --quiet -V --target-env vulkan1.2 -Iglsl
VALIDATE := $(shell command -v spirv-val 2>/dev/null)

# Kernels that need a newer glslang than our minimum. If the installed one is older, tools/build/spirv.sh takes their checked-in SPIR-V.
NEWER    := $(basename $(notdir $(shell grep -l GL_KHR_cooperative_matrix glsl/*/*.comp)))
FAMILIES := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard glsl/*/*.comp)))))
KERNELS  := $(sort $(basename $(notdir $(wildcard glsl/*/*.comp))))
EXE      := $(if $(WINDOWS),.exe)
# Of the files that know the operating system, those of the other one are left out.
SYSTEM   := $(if $(WINDOWS),windows,posix)
OTHERS   := %_$(filter-out $(SYSTEM),posix windows).c
LIB_SRC  := $(filter-out $(OTHERS),$(sort $(wildcard runtime/*/*.c runtime/*/*/*.c)))
TOOL_SRC := $(filter-out tools/build/% $(OTHERS),$(sort $(wildcard tools/*/*.c tools/*/*/*.c)))
SUPPORT  := $(sort $(wildcard test/support/*.c))
UNIT_SRC := $(sort $(wildcard test/unit/*/test_*.c))
# Tests that use POSIX themselves, or tools for SPIR-V of the system of the build, do not run on Windows.
POSIX    := <(sys/(wait|mman|resource|auxv|file)|glob|dlfcn|regex|fftw3)\.h>|\b(fork|mkdtemp|mkfifo|symlink|setenv|unsetenv|pthread_create|pthread_mutex_lock|fmemopen|open_memstream|timespec_get|clock_gettime|strndup|strsep|_SC_PAGESIZE|SIGKILL|module_assemble)\b
ifneq ($(WINDOWS),)
UNIT_SRC := $(filter-out $(shell grep -lE '$(POSIX)' $(UNIT_SRC)),$(UNIT_SRC))
endif
FUZZ_SRC := $(filter-out %/driver.c,$(sort $(wildcard test/fuzz/*.c)))
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/kernel_table.o
TOOL_OBJ := $(TOOL_SRC:%.c=$(BUILD)/%.o)
UNITS    := $(addprefix $(BUILD)/test/,$(basename $(notdir $(UNIT_SRC)))) $(BUILD)/test/rlxvk
NUMBERS  := test_fft test_large test_radix_sort# slow under sanitizers, which find nothing in them
# They take 10 s or more each, so that only CI and RLXVK_TEST_ALL=1 run them.
LONG     := $(addprefix test_,bounded chat_generate cli fft generate knn llama lm models operands parts permute radix_sort range row_ranges specialize transform)
FUZZERS  := $(FUZZ_SRC:test/fuzz/%.c=$(BUILD)/fuzz/%)
# These draw a picture with libpng, which cross compilers seldom have.
DRAWING  := $(shell grep -l '"picture.h"' test/examples/*.c)
EXAMPLES := $(patsubst test/examples/%.c,$(BUILD)/examples/%$(EXE),$(filter-out $(if $(CROSS),$(DRAWING)),$(wildcard test/examples/*.c)))
LIB      := $(BUILD)/librlxvk.a
SHARED   := $(BUILD)/$(if $(WINDOWS),rlxvk.dll,librlxvk.so)
INSIDE   := $(BUILD)/inside.a
OBJCOPY  ?= objcopy
PROGRAM  := $(BUILD)/bin/rlxvk$(EXE)
PACKAGE  := $(BUILD)/python/rlxvk
PYTHON_SRC := $(wildcard tools/python/rlxvk/*.py) tools/python/rlxvk/py.typed
VERSION  := $(shell awk '/define RLXVK_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $$3; dot = "." }' include/rlxvk.h)

.PHONY: all help deps demo python wheel test test-compilers test-windows test-cross unit-tests mutants conform bench lint spirv readme format dist deb install uninstall clean kernels generated units examples fuzz fuzzers
.DELETE_ON_ERROR:

# Installs missing packages first. Then another make builds the goals, because only a new one finds them.
INSTALLS := $(filter deps test lint,$(MAKECMDGOALS))
GOALS    := $(filter-out deps,$(MAKECMDGOALS))
ifneq ($(if $(installed),,$(INSTALLS)),)
.PHONY: installed
$(MAKECMDGOALS): installed ; @:
installed:
	@tools/build/deps.sh $(INSTALLS:deps=build)
	@$(if $(GOALS),$(MAKE) --no-print-directory installed=yes $(GOALS),:)
else

all: $(LIB) $(SHARED) $(PROGRAM) $(if $(CROSS),examples,$(BUILD)/rlxvk.1 $(BUILD)/man3/rlxvk.stamp $(BUILD)/rlxvk.bash) ## build the library, static and shared, and the program (config=release|debug|asan|tsan|coverage)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

deps: ## install what is missing to build and run, through the system's package manager

demo: all ## run the bundled language model on the best device found
	@$(PROGRAM) generate test/data/docs-5m-q4_k_m.gguf -p "The open() system call" --tokens 120 --greedy

python: $(PACKAGE)/_declarations.py $(PYTHON_SRC:tools/python/rlxvk/%=$(PACKAGE)/%) $(PACKAGE)/librlxvk.so ## the Python package, into build/python; it needs cffi and NumPy

wheel: python ## the Python package as a wheel, into build/wheel; it needs setuptools and wheel
	@PYTHON='$(PYTHON)' tools/python/wheel.sh $(BUILD)/python $(BUILD)/wheel $(VERSION)

test: all units python ## every kind of test, on the software drivers, with fewer cases than RLXVK_TEST_ALL=1 runs; installs what they need
	@BUILD=$(BUILD) NUMBERS='$(NUMBERS)' LONG='$(LONG)' test/run.sh

test-compilers: all ## compile all pipelines for GPUs that are not here, by Mesa's compilers, and compare registers and spills with a table
	@BUILD=$(BUILD) test/compilers.sh

test-windows: ## build with MinGW, and test that under Wine on lavapipe; installs what this needs
	@tools/build/deps.sh windows
	@$(MAKE) --no-print-directory -s all
	@$(MAKE) --no-print-directory -s CROSS=x86_64-w64-mingw32- all unit-tests
	@BUILD=$(BASE)/x86_64-w64-mingw32 LONG='$(LONG)' test/windows.sh

test-cross: $(GEN)/kernel_table.c ## build for other processors, C libraries and compilers, and run what needs no device (TARGETS="musl i686-linux-gnu"); installs what this needs
	@tools/build/deps.sh cross
	@LONG='$(LONG)' NUMBERS='$(NUMBERS)' POSIX='$(POSIX)' test/cross.sh $(TARGETS)

unit-tests: $(filter $(BUILD)/test/test_%,$(UNITS))

units: $(UNITS) $(EXAMPLES) $(FUZZERS) $(BUILD)/test/mutant_cases

examples: $(EXAMPLES) ## the programs of test/examples, into build/examples

fuzz: fuzzers ## run each fuzz target for RLXVK_TEST_FUZZ_SECONDS (60); CC=clang: under libFuzzer
	@BUILD=$(BUILD) test/fuzz.sh

fuzzers: $(FUZZERS)

mutants: all units $(BUILD)/test/mutant_cases ## plant faults in kernels and in C, and see whether the tests find them (MUTANTS="--count 40 --only glsl/rows")
	@$(PYTHON) test/mutants.py $(MUTANTS)

conform: all ## kernel conformance on the device at hand
	$(PROGRAM) conform

bench: all ## kernel times on the device at hand
	$(PROGRAM) bench

lint: all ## formatting, layering, static checks, SPIR-V, headers; installs what they need
	@BUILD=$(BUILD) tools/build/lint.sh

spirv: ## compile the checked-in SPIR-V again (needs a glslang of 2025 or newer on PATH)
	@tools/build/spirv.sh update

readme: all ## put the op tables into include/OPS.md and include/ONNX.md
	@BUILD=$(BUILD) tools/build/readme.sh

format: ## apply .clang-format
	find include runtime glsl tools test -name '*.[ch]' -exec clang-format -i {} +

dist: generated ## a source archive, build/rlxvk-VERSION.tar.gz, with SPIR-V inside: building it takes a C compiler and make
	@CC='$(HOSTCC)' tools/build/dist.sh $(GEN) $(BASE)/rlxvk-$(VERSION)

deb: dist ## Debian packages, into build/deb, by the layout of tools/package/debian; installs what this needs
	@tools/build/deps.sh deb
	@tools/build/deb.sh $(BASE)/rlxvk-$(VERSION).tar.gz $(BASE)/deb

install: all ## copy what users need to PREFIX (/usr/local), below DESTDIR where one is named
	@BUILD=$(BUILD) VERSION=$(VERSION) tools/build/install.sh install

uninstall: ## remove exactly that
	@BUILD=$(BUILD) VERSION=$(VERSION) tools/build/install.sh uninstall

clean: ## remove what was built
	rm -rf build

vpath %.comp $(sort $(dir $(wildcard glsl/*/*.comp)))

ifeq ($(PREBUILT),)
# ---- kernels: GLSL -> SPIR-V (reflected as compiled, embedded as optimized) -> C ----

# The .d file of a kernel lists its includes. If it is missing, the kernel is compiled again. An include that no longer exists is not an
# error.
-include $(KERNELS:%=$(BASE)/spv/%.d)
$(patsubst %,$(BASE)/spv/%.raw.spv,$(filter-out $(basename $(notdir $(wildcard $(BASE)/spv/*.d))),$(KERNELS))): FORCE
FORCE: ;
glsl/%: ;

$(NEWER:%=$(BASE)/spv/%.raw.spv): $(BASE)/spv/%.raw.spv: %.comp spv/MANIFEST
	@mkdir -p $(@D)
	@echo "  GLSL $*"
	@GLSLANG=$(GLSLANG) tools/build/spirv.sh raw $* $@

$(NEWER:%=$(BASE)/spv/%.spv): $(BASE)/spv/%.spv: $(BASE)/spv/%.raw.spv
	@cp $< $@

$(BASE)/spv/%.raw.spv: %.comp
	@mkdir -p $(@D)
	@echo "  GLSL $*"
	@$(GLSLANG) $(GLSLFLAGS) --depfile $(@:.raw.spv=.d) -o $@ $< || { $(GLSLANG) $(GLSLFLAGS:--quiet=) -o $@ $<; exit 1; }
	@$(if $(VALIDATE),$(VALIDATE) --target-env vulkan1.2 $@)

# No -O here, because it would copy every function into each step of a region or stage of a transform. Drivers specialize first.
$(BASE)/spv/region_%.spv: $(BASE)/spv/region_%.raw.spv
	@$(if $(OPTIMIZE),$(OPTIMIZE) --target-env=vulkan1.2 --eliminate-dead-functions -o $@ $<,cp $< $@)
$(BASE)/spv/fft_register.spv $(BASE)/spv/welch.spv: $(BASE)/spv/%.spv: $(BASE)/spv/%.raw.spv
	@$(if $(OPTIMIZE),$(OPTIMIZE) --target-env=vulkan1.2 --eliminate-dead-functions -o $@ $<,cp $< $@)

$(BASE)/spv/%.spv: $(BASE)/spv/%.raw.spv
	@$(if $(OPTIMIZE),$(OPTIMIZE) --target-env=vulkan1.2 -O -o $@ $<,cp $< $@)
	@$(if $(VALIDATE),$(VALIDATE) --target-env vulkan1.2 $@)

$(BASE)/spv2c: $(addprefix tools/build/,spv2c.c reflect.c reflect.h pack.c pack.h) runtime/kernel/unpack.c runtime/kernel/packed.h runtime/kernel/packed_model.h
	@mkdir -p $(@D)
	@$(HOSTCC) -std=c11 $(WARNINGS) -O1 -Iruntime -o $@ $(filter %.c,$^)

$(GEN)/kernel_table.c: $(BASE)/spv2c $(KERNELS:%=$(BASE)/spv/%.raw.spv) $(KERNELS:%=$(BASE)/spv/%.spv)
	@mkdir -p $(@D)/constants
	@echo "  SPV2C $(words $(KERNELS)) kernels"
	@$(BASE)/spv2c $(GEN) $(BASE)/spv $(KERNELS)

# spv2c rewrites these files only if they change, so C files that include them are rebuilt only then.
$(GEN)/kernel_table.h $(FAMILIES:%=$(GEN)/constants/%.h): $(GEN)/kernel_table.c ;

else
$(GEN)/kernel_table.c: ;
endif

kernels: $(GEN)/kernel_table.c

# ---- C ----

# The library for users exports only the functions that the headers declare. The program and the tests use all functions.
PUBLIC   := $(GEN)/public
$(PUBLIC).txt: $(wildcard include/*.h) Makefile
	@mkdir -p $(@D)
	@$(HOSTCC) -E -P -Iinclude $(patsubst %,-include %,$(notdir $(filter %.h,$^))) -x c /dev/null | grep -v '^typedef' | grep -oE '\brlxvk_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u >$@

$(PUBLIC).map: $(PUBLIC).txt
	@{ echo '{ global:'; sed 's/$$/;/' $<; echo 'local: *; };'; } >$@

# What a DLL exports. Programs link with the import library.
$(PUBLIC).def: $(PUBLIC).txt
	@{ echo 'LIBRARY rlxvk.dll'; echo EXPORTS; sed 's/^/  /' $<; } >$@

# Windows of 32 bits puts this before each name of C.
MARK     := $(if $(WINDOWS),$(if $(filter i686%,$(CROSS)),_))
$(LIB): $(LIB_OBJ) $(PUBLIC).txt
	@rm -f $@
	@$(LD) -r $(GROUPS) -o $(BUILD)/rlxvk.o $(LIB_OBJ)
	@sed 's/^/$(MARK)/' $(PUBLIC).txt >$(BUILD)/public.txt
	@$(OBJCOPY) --keep-global-symbols=$(BUILD)/public.txt $(BUILD)/rlxvk.o
	@$(AR) rcs $@ $(BUILD)/rlxvk.o

ifneq ($(WINDOWS),)
$(BUILD)/rlxvk.def: $(PUBLIC).def
	@cp $< $@

$(SHARED): $(LIB_OBJ) $(BUILD)/rlxvk.def
	@echo "  LD $@"
	@$(CC) -shared $(LDFLAGS) -Wl,--out-implib,$(BUILD)/librlxvk.dll.a -o $@ $(LIB_OBJ) $(BUILD)/rlxvk.def $(LDLIBS)
else
# The file has the full version in its name, and the soname has the major version. Calls within the library stay inside it.
SONAME   := $(notdir $(SHARED)).$(firstword $(subst ., ,$(VERSION)))
$(SHARED).$(VERSION): $(LIB_OBJ) $(PUBLIC).map
	@echo "  LD $@"
	@$(CC) -shared $(LDFLAGS) -Wl,-soname,$(SONAME),--version-script=$(PUBLIC).map,-Bsymbolic-functions,--as-needed \
	  $(if $(filter -fsanitize=%,$(MODE)),,-Wl,-z,defs) -o $@ $(LIB_OBJ) $(LDLIBS)

$(SHARED): $(SHARED).$(VERSION)
	@ln -sf $(<F) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $@
endif

$(INSIDE): $(LIB_OBJ)
	@rm -f $@
	@$(AR) rcs $@ $^

$(PROGRAM): $(TOOL_OBJ) $(INSIDE)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The man page and the bash completion are made from output of the program: its switches and its --help.
$(BUILD)/rlxvk.1: tools/build/man.sh tools/build/rlxvk.1.in $(PROGRAM)
	@$< $(PROGRAM) $(VERSION) >$@

# The Python package is its files, modules made from the headers, and a copy of the library.
$(PACKAGE)/_declarations.py: tools/python/bind.py tools/python/builders.py $(sort $(wildcard include/*.h))
	@echo "  BIND $@"
	@python=$$(PYTHON='$(PYTHON)' tools/python/interpreter.sh cffi) && CC='$(CC)' $$python $< $(@D) $(filter %.h,$^) && touch $@

$(PACKAGE)/%: tools/python/rlxvk/%
	@mkdir -p $(@D)
	@cp $< $@

$(PACKAGE)/librlxvk.so: $(SHARED).$(VERSION)
	@mkdir -p $(@D)
	@cp $< $@

# A man page for each public call, made from the headers.
$(BUILD)/man3/rlxvk.stamp: tools/build/man3.awk $(wildcard include/*.h)
	@rm -rf $(@D) && mkdir -p $(@D)
	@awk -v folder=$(@D) -v version=$(VERSION) -v date="$$(sed -n 's/^\.Dd //p' tools/build/rlxvk.1.in)" -f $^ && touch $@

$(BUILD)/rlxvk.bash: tools/build/completion.sh $(PROGRAM)
	@$< $(PROGRAM) >$@

# The program, with the checks that every test program has at its end (test/support/balance.c).
$(BUILD)/test/rlxvk: $(TOOL_OBJ) $(BUILD)/test/support/balance.o $(INSIDE)
	@mkdir -p $(@D)
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A cross compiler has no cmocka, so it is built from its source.
CMOCKA   := $(if $(CROSS),$(BUILD)/cmocka/cmocka.o,-lcmocka)
ifneq ($(CROSS),)
CPPFLAGS += -isystem $(BUILD)/cmocka/include
$(CMOCKA): test/cmocka.sh
	@CC=$(CC) $< $(@D)
$(UNIT_SRC:%.c=$(BUILD)/%.o) $(SUPPORT:%.c=$(BUILD)/%.o): | $(CMOCKA)
endif

TESTED   := $(SUPPORT:%.c=$(BUILD)/%.o) $(filter-out $(BUILD)/tools/cli/rlxvk.o,$(TOOL_OBJ)) $(INSIDE)
define unit
$(BUILD)/test/$(notdir $1): $(BUILD)/$1.o $(TESTED) | $(filter %.o,$(CMOCKA))
	@mkdir -p $$(@D)
	@$$(CC) $$(LDFLAGS) -o $$@$$(EXE) $$^ $(CMOCKA) $$(LDLIBS)
	@$$(if $$(EXE),touch $$@)
endef
$(foreach u,$(UNIT_SRC:%.c=%),$(eval $(call unit,$u)))

# The program that runs the conformance cases that concern a mutant.
$(BUILD)/test/mutant_cases: $(BUILD)/test/mutants/cases.o $(filter-out $(BUILD)/tools/cli/rlxvk.o,$(TOOL_OBJ)) $(INSIDE)
	@mkdir -p $(@D)
	@$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/test/test_fft: LDLIBS += -lfftw3
$(BUILD)/test/test_cli: | $(BUILD)/test/rlxvk

# The examples are built as users build programs: with the public headers and the archive. test/examples/Makefile uses the installed ones.
EXAMPLE_SPIRV := $(patsubst test/examples/%.comp,$(GEN)/examples/%.spv.h,$(wildcard test/examples/*.comp))
ifeq ($(PREBUILT),)
$(GEN)/examples/%.spv.h: test/examples/%.comp
	@mkdir -p $(@D)
	@$(GLSLANG) --quiet -V --target-env vulkan1.2 --vn words -o $@ $<
endif

$(BUILD)/examples/custom_op$(EXE): $(GEN)/examples/custom_op.spv.h
$(DRAWING:test/examples/%.c=$(BUILD)/examples/%$(EXE)): LDLIBS += -lpng

$(EXAMPLES): $(BUILD)/examples/%$(EXE): test/examples/%.c test/examples/picture.h $(LIB)
	@mkdir -p $(@D)
	@$(CC) -std=c11 $(WARNINGS) $(MODE) -Iinclude -I$(GEN)/examples $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS)

FUZZ_MAIN := $(if $(filter libfuzzer,$(config)),-fsanitize=fuzzer,$(BUILD)/test/fuzz/driver.o)
$(BUILD)/fuzz/%: $(BUILD)/test/fuzz/%.o $(filter %.o,$(FUZZ_MAIN)) $(TESTED)
	@mkdir -p $(@D)
	@$(CC) $(LDFLAGS) $(filter -%,$(FUZZ_MAIN)) -o $@ $^ -lcmocka $(LDLIBS)

# The calls of test_null.c: every public function, with NULL for one of its pointers at a time.
NULL_CALLS := test/unit/exec/null_calls.awk test/unit/exec/null_arguments.txt $(sort $(wildcard include/*.h))
$(GEN)/null_calls.h: $(NULL_CALLS)
	@mkdir -p $(@D)
	@awk -f $(NULL_CALLS) >$@

$(BUILD)/test/unit/exec/test_null.o: $(GEN)/null_calls.h

# The list of conformance case files, for cases.h.
$(GEN)/case_families.h: $(sort $(wildcard tools/conform/cases/*.c))
	@mkdir -p $(@D)
	@sed -n 's/^const case_family \([a-z_0-9]*\) = .*/CASES(\1)/p' $^ >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# All that the C files and the libraries need which is not in the tree. tools/cmake takes it from here, and the source archive has it.
generated: $(GEN)/kernel_table.c $(PUBLIC).txt $(PUBLIC).map $(PUBLIC).def $(GEN)/null_calls.h $(GEN)/case_families.h $(EXAMPLE_SPIRV)

$(BUILD)/%.o: %.c | $(GEN)/kernel_table.h $(GEN)/case_families.h $(HEADERS)
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/kernel_table.o: $(GEN)/kernel_table.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BASE)/headers:
	@mkdir -p $@
	@ln -sfn /usr/include/vulkan /usr/include/vk_video /usr/include/spirv $@

.PRECIOUS: $(BUILD)/%.o $(BASE)/spv/%.raw.spv $(BASE)/spv/%.spv
-include $(BUILD)/test/mutants/cases.d $(LIB_OBJ:.o=.d) $(TOOL_OBJ:.o=.d) $(SUPPORT:%.c=$(BUILD)/%.d) $(UNIT_SRC:%.c=$(BUILD)/%.d) $(FUZZ_SRC:%.c=$(BUILD)/%.d)

endif
