/* Reads kernels: their modules, the declarations in them, and the sources from which they were
 * compiled. */
#include "reflect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void die(const char *what, const char *path)
{
    fprintf(stderr, "spv2c: %s: %s\n", path, what);
    exit(1);
}

static void *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die("cannot open", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *content = calloc(1, (size_t)(size > 0 ? size : 0) + 2);
    if (size < 0 || !content || fread(content, 1, (size_t)size, file) != (size_t)size)
        die("cannot read", path);
    fclose(file);
    *out_size = (size_t)size;
    return content;
}

char *path_of(const char *folder, const char *name, const char *end)
{
    size_t length = strlen(folder) + strlen(name) + strlen(end) + 2;
    char *path = malloc(length);
    if (!path)
        die("out of memory", name);
    snprintf(path, length, "%s/%s%s", folder, name, end);
    return path;
}

static module load(const char *folder, const char *name, const char *end)
{
    size_t size;
    module m = {.name = name, .path = path_of(folder, name, end)};
    m.words = read_file(m.path, &size);
    m.count = size / 4;
    if (size < 20 || size % 4 || m.words[0] != 0x07230203u)
        die("not a SPIR-V module", m.path);
    return m;
}

const uint32_t *find(const module *m, unsigned opcode, unsigned at, uint32_t value)
{
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xffff) == opcode && (m->words[i] >> 16) > at &&
            m->words[i + at] == value)
            return &m->words[i];
    return NULL;
}

uint32_t decoration_limit(const module *m, uint32_t decoration)
{
    uint32_t limit = 0;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xffff) == OP_DECORATE && m->words[i + 2] == decoration &&
            m->words[i + 3] + 1 > limit)
            limit = m->words[i + 3] + 1;
    return limit;
}

static uint32_t type_size(const module *m, uint32_t type);

uint32_t struct_size(const module *m, uint32_t type)
{
    const uint32_t *declaration = find(m, OP_TYPE_STRUCT, 1, type);
    uint32_t size = 0;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) != OP_MEMBER_DECORATE || w[1] != type || w[3] != DECORATION_OFFSET)
            continue;
        uint32_t end = w[4] + type_size(m, declaration[2 + w[2]]);
        size = end > size ? end : size;
    }
    return size;
}

static uint32_t array_size(const module *m, const uint32_t *array)
{
    const uint32_t *length = find(m, OP_CONSTANT, 2, array[3]);
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) == OP_DECORATE && w[1] == array[1] && w[2] == DECORATION_ARRAY_STRIDE)
            return w[3] * length[3];
    }
    die("argument array without a stride", m->path);
}

static uint32_t type_size(const module *m, uint32_t type)
{
    const uint32_t *array = find(m, OP_TYPE_ARRAY, 1, type);
    if (array)
        return array_size(m, array);
    if (find(m, OP_TYPE_STRUCT, 1, type))
        return struct_size(m, type);
    if (!find(m, OP_TYPE_INT, 1, type) && !find(m, OP_TYPE_FLOAT, 1, type))
        die("argument member is neither a 4-byte scalar, an array nor a struct", m->path);
    return 4;
}

uint32_t argument_struct(const module *m)
{
    const uint32_t *variable = find(m, OP_VARIABLE, 3, STORAGE_PUSH_CONSTANT);
    if (!variable)
        return 0;
    const uint32_t *pointer = find(m, OP_TYPE_POINTER, 1, variable[1]);
    const uint32_t *block = find(m, OP_TYPE_STRUCT, 1, pointer[3]);
    if ((block[0] >> 16) != 3 || !find(m, OP_TYPE_STRUCT, 1, block[2]))
        die("the push-constant block must hold exactly one struct of glsl/args", m->path);
    return block[2];
}

const char *name_of(const module *m, uint32_t id)
{
    const uint32_t *name = find(m, OP_NAME, 1, id);
    if (!name)
        die("module without names", m->path);
    return (const char *)&name[2];
}

const char *member_name(const module *m, uint32_t type, uint32_t member)
{
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) == OP_MEMBER_NAME && w[1] == type && w[2] == member)
            return (const char *)&w[3];
    }
    die("module without names of members", m->path);
}

/* Finds the names of the specialization constants. LOCAL_SIZE is at 0. */
static void name_constants(kernel *k)
{
    const module *m = &k->reflected;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) != OP_DECORATE || w[2] != DECORATION_SPEC_ID)
            continue;
        if (w[3] >= MAX_CONSTANTS || (w[3] == 0) != !find(m, OP_NAME, 1, w[1]))
            die("constant 0 must be the workgroup size, the others below 64", m->path);
        k->constants[w[3]] = w[3] ? name_of(m, w[1]) : "LOCAL_SIZE";
        if (w[3] >= k->constant_count)
            k->constant_count = w[3] + 1;
    }
    if (!k->constants[0])
        die("constant 0 must be the workgroup size", m->path);
}

const char *next_source(const char *word, const char *start, const char *end)
{
    for (; *word; word += strlen(word) + 1) {
        size_t length = strlen(word);
        if (strncmp(word, start, strlen(start)) == 0 && length > strlen(end) &&
            strcmp(word + length - strlen(end), end) == 0)
            return word;
    }
    return NULL;
}

static void read_sources(kernel *k, const char *folder)
{
    size_t size, kept = 0;
    char *path = path_of(folder, k->name, ".d"), *text = read_file(path, &size);
    for (size_t i = 0; i < size; i++) { /* each run of blanks becomes one 0 */
        bool blank = isspace((unsigned char)text[i]) || text[i] == '\\';
        if (!blank || (kept && text[kept - 1]))
            text[kept++] = blank ? '\0' : text[i];
    }
    text[kept] = text[kept + 1] = '\0';
    k->sources = text;
    const char *source = next_source(text, "glsl/", ".comp");
    if (!source || sscanf(source, "glsl/%63[^/]/", k->folder) != 1)
        die("does not name the kernel's source", path);
    free(path);
}

bool has_source(const kernel *k, const char *source)
{
    const char *found = next_source(k->sources, source, "");
    return found && strcmp(found, source) == 0;
}

void read_kernel(kernel *k, const char *folder, const char *name)
{
    k->name = name;
    k->reflected = load(folder, name, ".raw.spv");
    k->embedded = load(folder, name, ".spv");
    name_constants(k);
    read_sources(k, folder);
}

void free_kernel(kernel *k)
{
    free(k->reflected.path);
    free(k->reflected.words);
    free(k->embedded.path);
    free(k->embedded.words);
    free(k->sources);
}
