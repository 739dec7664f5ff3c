#include "support/module.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_WORDS = 4096 };

bool module_is_valid(const module *m, const char *complaint)
{
    char command[128];
    snprintf(command, sizeof command, "spirv-val --target-env vulkan1.2 - >%s 2>&1", complaint);
    FILE *pipe = popen(command, "w");
    assert_non_null(pipe);
    assert_int_equal(fwrite(m->words, sizeof *m->words, m->count, pipe), m->count);
    return pclose(pipe) == 0;
}

uint32_t module_occurrences(const module *m, uint32_t opcode)
{
    uint32_t found = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < m->count; i += length_of(m->words[i]))
        found += opcode_of(m->words[i]) == opcode;
    return found;
}

module module_assemble(const char *text)
{
    module m = {memory_zeroed(MOST_WORDS, sizeof *m.words), 0};
    char path[] = "/tmp/rlxvk_module_XXXXXX", command[128];
    int file = mkstemp(path);
    assert_true(file >= 0 && m.words);
    FILE *out = fdopen(file, "w");
    fputs(text, out);
    fclose(out);
    snprintf(command, sizeof command, "spirv-as --target-env vulkan1.2 -o - %s", path);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    m.count = (uint32_t)fread(m.words, sizeof *m.words, MOST_WORDS, in);
    assert_int_equal(pclose(in), 0);
    remove(path);
    assert_true(module_is_valid(&m, "/dev/stderr"));
    return m;
}
