/*
 * spv2c: turns compiled kernels into the registry the runtime embeds.
 *
 *   spv2c OUT_DIR [args/FOLDER.h ...] NAME REFLECTED.spv EMBEDDED.spv [NAME ...]
 *
 * Writes OUT_DIR/kernel_table.h (enum kernel_id) and OUT_DIR/kernel_table.c (words, argument size,
 * bindings, specialization constants; _Static_asserts tie each push-constant struct to that of
 * glsl/args/, field by field). Reflection reads the unoptimized module, because optimizers drop
 * unused struct members and bindings; debug names are left out of the words.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OP_SOURCE_EXTENSION = 4,
    OP_SOURCE = 3,
    OP_NAME = 5,
    OP_MEMBER_NAME = 6,
    OP_STRING = 7,
    OP_LINE = 8,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_NO_LINE = 317,
    OP_MODULE_PROCESSED = 330,
    CAPABILITY_SUBGROUP_SHUFFLE = 65,
    CAPABILITY_COOPERATIVE_MATRIX = 6022,
    DECORATION_SPEC_ID = 1,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35,
    STORAGE_PUSH_CONSTANT = 9
};

typedef struct module {
    const char *name, *path;
    uint32_t *words;
    size_t count;
} module;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "spv2c: %s: %s\n", path, what);
    exit(1);
}

static module load(const char *name, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die("cannot open", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    module m = {name, path, malloc((size_t)(size > 0 ? size : 1)), (size_t)size / 4};
    if (size < 20 || size % 4 || fread(m.words, 1, (size_t)size, file) != (size_t)size ||
        m.words[0] != 0x07230203u)
        die("not a SPIR-V module", path);
    fclose(file);
    return m;
}

/* The first instruction with this opcode whose word `at` equals `value`, at or after *position;
 * NULL when none. */
static const uint32_t *find(const module *m, unsigned opcode, unsigned at, uint32_t value)
{
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xffff) == opcode && (m->words[i] >> 16) > at &&
            m->words[i + at] == value)
            return &m->words[i];
    return NULL;
}

/* Largest literal of a decoration over all ids, plus one; 0 when absent. */
static uint32_t decoration_limit(const module *m, uint32_t decoration)
{
    uint32_t limit = 0;
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16)
        if ((m->words[i] & 0xffff) == OP_DECORATE && m->words[i + 2] == decoration &&
            m->words[i + 3] + 1 > limit)
            limit = m->words[i + 3] + 1;
    return limit;
}

static uint32_t type_size(const module *m, uint32_t type);

static uint32_t struct_size(const module *m, uint32_t type)
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
    return 0;
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

/* The struct inside the push-constant block: its type id; 0 when the kernel takes no arguments. */
static uint32_t argument_struct(const module *m)
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

static bool is_debug(uint32_t opcode)
{
    return (opcode >= OP_SOURCE && opcode <= OP_LINE) || opcode == OP_NO_LINE ||
           opcode == OP_MODULE_PROCESSED || opcode == 2 /* OpSourceContinued */;
}

static size_t write_words(FILE *out, const module *m)
{
    size_t written = 0;
    fprintf(out, "static const uint32_t %s_words[] = {", m->name);
    for (size_t i = 0; i < m->count;) {
        size_t length = i < 5 ? 5 : m->words[i] >> 16;
        bool skip = i >= 5 && is_debug(m->words[i] & 0xffff);
        for (size_t j = 0; j < length && !skip; j++)
            fprintf(out, "%s0x%x,", written++ % 12 ? "" : "\n", m->words[i + j]);
        i += length;
    }
    fprintf(out, "\n};\n");
    return written;
}

static void write_upper(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(toupper((unsigned char)*name), out);
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w+");
    if (!out)
        die("cannot write", path);
    fprintf(out, "/* Generated by spv2c; do not edit. */\n");
    return out;
}

static bool same_content(FILE *a, FILE *b)
{
    int c;
    rewind(a);
    do
        c = getc(a);
    while (c == getc(b) && c != EOF);
    return c == EOF && feof(b);
}

/* Puts NAME.new in the place of NAME, unless they are the same: nothing is rebuilt for it then. */
static void replace(FILE *out, const char *folder, const char *name)
{
    char made[4096], path[4096];
    snprintf(made, sizeof made, "%s/%s.new", folder, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *old = fopen(path, "r");
    bool same = old && same_content(out, old);
    if (old)
        fclose(old);
    if (fclose(out) != 0 || (same ? remove(made) : rename(made, path)) != 0)
        die("cannot write", path);
}

static const char *name_of(const module *m, uint32_t id)
{
    const uint32_t *name = find(m, OP_NAME, 1, id);
    if (!name)
        die("module without the names of its arguments", m->path);
    return (const char *)&name[2];
}

static const char *member_name(const module *m, uint32_t type, uint32_t member)
{
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) == OP_MEMBER_NAME && w[1] == type && w[2] == member)
            return (const char *)&w[3];
    }
    die("module without the names of its arguments", m->path);
    return NULL;
}

/* Ties the struct of glsl/args/ to the module's, field by field: a swap of two would pass by size.
 */
static void write_argument_checks(FILE *out, const module *m, uint32_t type, uint32_t bytes)
{
    const char *name = name_of(m, type);
    fprintf(out, "_Static_assert(sizeof(struct %s) == %u, \"%s: size of its arguments\");\n", name,
            bytes, m->name);
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) != OP_MEMBER_DECORATE || w[1] != type || w[3] != DECORATION_OFFSET)
            continue;
        const char *field = member_name(m, type, w[2]);
        fprintf(out, "_Static_assert(offsetof(struct %s, %s) == %u, \"%s: place of %s\");\n", name,
                field, w[4], m->name, field);
    }
}

static void write_row(FILE *out, const module *reflected, size_t word_count)
{
    uint32_t arguments = argument_struct(reflected);
    uint32_t bytes = arguments ? struct_size(reflected, arguments) : 0;
    if (decoration_limit(reflected, DECORATION_DESCRIPTOR_SET) > 1)
        die("bindings must be in descriptor set 0", reflected->path);
    if (bytes > 128)
        die("arguments above 128 bytes", reflected->path);
    if (arguments)
        write_argument_checks(out, reflected, arguments, bytes);
    fprintf(out, "#define %s_ROW {\"%s\", %s_words, %zu, %u, %u, %u, %d}\n", reflected->name,
            reflected->name, reflected->name, word_count, bytes,
            decoration_limit(reflected, DECORATION_BINDING),
            decoration_limit(reflected, DECORATION_SPEC_ID),
            find(reflected, OP_CAPABILITY, 1, CAPABILITY_COOPERATIVE_MATRIX) ||
                find(reflected, OP_CAPABILITY, 1, CAPABILITY_SUBGROUP_SHUFFLE));
}

static bool is_header(const char *argument)
{
    size_t length = strlen(argument);
    return length > 2 && strcmp(argument + length - 2, ".h") == 0;
}

int main(int argc, char **argv)
{
    int headers = 0;
    while (2 + headers < argc && is_header(argv[2 + headers]))
        headers++;
    int kernels = (argc - 2 - headers) / 3;
    char **kernel = argv + 2 + headers;
    if (kernels < 1 || (argc - 2 - headers) % 3 != 0)
        die("usage: spv2c OUT_DIR [args/FOLDER.h ...] NAME REFLECTED.spv EMBEDDED.spv ...",
            "arguments");
    FILE *header = create(argv[1], "kernel_table.h.new");
    fprintf(header, "enum kernel_id {\n");
    for (int i = 0; i < kernels; i++) {
        fprintf(header, "    KERNEL_");
        write_upper(header, kernel[3 * i]);
        fprintf(header, ",\n");
    }
    fprintf(header, "    KERNEL_COUNT\n};\n");
    replace(header, argv[1], "kernel_table.h");

    FILE *table = create(argv[1], "kernel_table.c");
    fprintf(table, "#include \"kernel/kernel.h\"\n");
    for (int i = 0; i < headers; i++)
        fprintf(table, "#include \"%s\"\n", argv[2 + i]);
    for (int i = 0; i < kernels; i++) {
        module reflected = load(kernel[3 * i], kernel[3 * i + 1]);
        module embedded = load(kernel[3 * i], kernel[3 * i + 2]);
        write_row(table, &reflected, write_words(table, &embedded));
        free(reflected.words);
        free(embedded.words);
    }
    fprintf(table, "\nconst kernel_info kernel_table[KERNEL_COUNT] = {\n");
    for (int i = 0; i < kernels; i++)
        fprintf(table, "    %s_ROW,\n", kernel[3 * i]);
    fprintf(table, "};\n");
    fclose(table);
    return 0;
}
