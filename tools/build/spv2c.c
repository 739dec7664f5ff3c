/*
 * spv2c: turns compiled kernels into the tables that the runtime has of them.
 *
 *   spv2c OUT_DIR SPV_DIR NAME ...
 *
 * It reads three files of each kernel in SPV_DIR:
 *   NAME.raw.spv   as compiled
 *   NAME.spv       as optimized
 *   NAME.d         the sources from which it was compiled
 *
 * It writes these files in OUT_DIR:
 *   kernel_table.h       enum kernel_id
 *   kernel_table.c       packed modules (pack.h), sizes of arguments, bindings, names of
 *                        specialization constants; _Static_asserts tie each push-constant struct to
 *                        that of glsl/args/, field by field
 *   constants/FOLDER.h   an enumerator KERNEL_NAME for each specialization constant; also FILE_NAME
 *                        if all kernels that include FILE.glsl have NAME at the same id
 *
 * If these kernels no longer agree, FILE_NAME is not written, and code that uses it does not
 * compile. Reflection reads the unoptimized module, because optimizers drop unused struct members
 * and bindings. Debug names are not packed.
 */
#include "pack.h"
#include "reflect.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opcodes for sources, names, strings and lines are adjacent, except for the end of a line. */
static bool is_debug(uint32_t opcode)
{
    return (opcode >= OP_SOURCE_CONTINUED && opcode <= OP_LINE) || opcode == OP_NO_LINE ||
           opcode == OP_MODULE_PROCESSED;
}

/* Works in place. */
static uint32_t drop_debug(module *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count;) {
        size_t length = i < 5 ? 5 : m->words[i] >> 16;
        bool skip = i >= 5 && is_debug(m->words[i] & 0xffff);
        memmove(m->words + kept, m->words + i, skip ? 0 : length * sizeof *m->words);
        kept += skip ? 0 : length;
        i += length;
    }
    return (uint32_t)kept;
}

/* Packs the module, and unpacks it again to check that nothing was lost. */
static packed_module write_module(FILE *out, module *m)
{
    uint32_t count = drop_debug(m), *words = malloc(count * sizeof *words);
    packed_module packed;
    if (!words || !pack_module(m->words, count, &packed))
        die("out of memory", m->path);
    void *room = malloc(kernel_unpack_bytes(&packed));
    if (!room || !kernel_unpack(&packed, room, words) ||
        memcmp(words, m->words, count * sizeof *words) != 0)
        die("does not unpack to what was packed", m->path);
    fprintf(out, "static const uint8_t %s_bytes[] = {", m->name);
    for (uint32_t i = 0; i < packed.byte_count; i++)
        fprintf(out, "%s%u,", i % 25 ? "" : "\n", packed.bytes[i]);
    fprintf(out, "\n};\n");
    free((void *)packed.bytes);
    free(room);
    free(words);
    return packed;
}

static void write_upper(FILE *out, const char *name)
{
    for (; *name; name++)
        fputc(toupper((unsigned char)*name), out);
}

static bool same_place(const kernel *k, uint32_t id, const char *name)
{
    return k->constants[id] && strcmp(k->constants[id], name) == 0;
}

/* Ties the struct of glsl/args/ to the module's, field by field, also in nested structs. If only
 * sizes were compared, swapped fields would pass. */
static void write_argument_checks(FILE *out, const module *m, uint32_t type, uint32_t bytes)
{
    const char *name = name_of(m, type);
    const uint32_t *declaration = find(m, OP_TYPE_STRUCT, 1, type);
    fprintf(out, "_Static_assert(sizeof(struct %s) == %u, \"%s: size of its arguments\");\n", name,
            bytes, m->name);
    for (size_t i = 5; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *w = &m->words[i];
        if ((w[0] & 0xffff) != OP_MEMBER_DECORATE || w[1] != type || w[3] != DECORATION_OFFSET)
            continue;
        const char *field = member_name(m, type, w[2]);
        fprintf(out, "_Static_assert(offsetof(struct %s, %s) == %u, \"%s: place of %s\");\n", name,
                field, w[4], m->name, field);
        if (find(m, OP_TYPE_STRUCT, 1, declaration[2 + w[2]]))
            write_argument_checks(out, m, declaration[2 + w[2]],
                                  struct_size(m, declaration[2 + w[2]]));
    }
}

/* The id of the constant that says how many bindings are used; 0 if there is none. */
static uint32_t bindings_constant(const kernel *k)
{
    for (uint32_t id = 1; id < k->constant_count; id++)
        if (same_place(k, id, "BINDINGS"))
            return id;
    return 0;
}

static void write_row(FILE *out, const kernel *k, packed_module packed)
{
    const module *reflected = &k->reflected;
    uint32_t arguments = argument_struct(reflected);
    uint32_t bytes = arguments ? struct_size(reflected, arguments) : 0;
    if (decoration_limit(reflected, DECORATION_DESCRIPTOR_SET) > 1)
        die("bindings must be in descriptor set 0", reflected->path);
    if (bytes > 128)
        die("arguments above 128 bytes", reflected->path);
    if (arguments)
        write_argument_checks(out, reflected, arguments, bytes);
    fprintf(out, "_Static_assert(%u <= KERNEL_MAX_CONSTANTS, \"%s\");\n", k->constant_count,
            k->name);
    fprintf(out, "static const char *const %s_constants[] = {", k->name);
    for (uint32_t id = 0; id < k->constant_count; id++)
        fprintf(out, k->constants[id] ? "\"%s\", " : "0, ", k->constants[id]);
    fprintf(out,
            "};\n#define %s_ROW {\"%s\", 0, {%s_bytes, %u, %u, %u}, %s_constants, %u, %u, %u, %u, "
            "%u, %d}\n",
            k->name, k->name, k->name, packed.byte_count, packed.text_bytes, packed.word_count,
            k->name, packed.word_count, bytes, decoration_limit(reflected, DECORATION_BINDING),
            k->constant_count, bindings_constant(k),
            find(reflected, OP_CAPABILITY, 1, CAPABILITY_COOPERATIVE_MATRIX) ||
                find(reflected, OP_CAPABILITY, 1, CAPABILITY_SUBGROUP_BALLOT) ||
                find(reflected, OP_CAPABILITY, 1, CAPABILITY_SUBGROUP_SHUFFLE));
}

/* Whether the source is glsl/FOLDER/NAME.END, for this FOLDER. */
static bool in_folder(const char *source, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(source + strlen("glsl/"), folder, length) == 0 &&
           source[strlen("glsl/") + length] == '/';
}

static bool is_first_of_folder(const kernel *kernels, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(kernels[i].folder, kernels[index].folder) == 0)
            return false;
    return true;
}

/* Opens NAME.new in the folder. replace() renames it to NAME. */
static FILE *create(const char *folder, const char *name)
{
    char *path = path_of(folder, name, ".new");
    FILE *out = fopen(path, "w+");
    if (out)
        fprintf(out, "/* Generated by spv2c; do not edit. */\n");
    else
        die("cannot write", path);
    free(path);
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

/* Renames NAME.new to NAME. With `keep`, the old file stays if both are equal, so that nothing is
 * rebuilt. */
static void replace(FILE *out, const char *folder, const char *name, bool keep)
{
    char *made = path_of(folder, name, ".new"), *path = path_of(folder, name, "");
    FILE *old = fopen(path, "rb");
    bool same = keep && old && same_content(out, old);
    if (old)
        fclose(old);
    if (fclose(out) != 0 || (same ? remove(made) : rename(made, path)) != 0)
        die("cannot write", path);
    free(made);
    free(path);
}

static void write_ids(const kernel *kernels, int count, const char *folder)
{
    FILE *out = create(folder, "kernel_table.h");
    fprintf(out, "enum kernel_id {\n");
    for (int i = 0; i < count; i++) {
        fprintf(out, "    KERNEL_");
        write_upper(out, kernels[i].name);
        fprintf(out, ",\n");
    }
    fprintf(out, "    KERNEL_COUNT\n};\n");
    replace(out, folder, "kernel_table.h", true);
}

/* Whether no earlier kernel has this source. */
static bool is_first(const kernel *kernels, int index, const char *source)
{
    for (int i = 0; i < index; i++)
        if (has_source(&kernels[i], source))
            return false;
    return true;
}

static void write_table(kernel *kernels, int count, const char *folder)
{
    FILE *out = create(folder, "kernel_table.c");
    fprintf(out, "#include \"kernel/kernel.h\"\n\n#include <stddef.h>\n");
    for (int i = 0; i < count; i++)
        for (const char *s = kernels[i].sources; (s = next_source(s, "glsl/args/", ".h"));
             s += strlen(s) + 1)
            if (is_first(kernels, i, s))
                fprintf(out, "#include \"%s\"\n", s + strlen("glsl/"));
    for (int i = 0; i < count; i++)
        write_row(out, &kernels[i], write_module(out, &kernels[i].embedded));
    fprintf(out, "\nconst kernel_info kernel_table[KERNEL_COUNT] = {\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "    %s_ROW,\n", kernels[i].name);
    fprintf(out, "};\n");
    replace(out, folder, "kernel_table.c", false); /* make compares its time, so it must be new */
}

static void write_enumerator(FILE *out, const char *prefix, const char *name, uint32_t id)
{
    fprintf(out, "enum { ");
    write_upper(out, prefix);
    fprintf(out, "_%s = %u };\n", name, id);
}

/* Writes the constants that all kernels with this source have in common. Writes none if only one
 * kernel has it. */
static void write_shared(FILE *out, const kernel *kernels, int count, const char *source)
{
    const kernel *first = NULL;
    char prefix[256];
    const char *name = strrchr(source, '/') + 1;
    int sharers = 0;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(strlen(name) - strlen(".glsl")), name);
    for (int i = 0; i < count; i++) {
        if (strcmp(kernels[i].name, prefix) == 0) /* these names belong to that kernel */
            return;
        if (has_source(&kernels[i], source) && sharers++ == 0)
            first = &kernels[i];
    }
    for (uint32_t id = 1; sharers > 1 && id < first->constant_count; id++) {
        bool all = first->constants[id] != NULL;
        for (int i = 0; i < count && all; i++)
            all = !has_source(&kernels[i], source) ||
                  same_place(&kernels[i], id, first->constants[id]);
        if (all)
            write_enumerator(out, prefix, first->constants[id], id);
    }
}

/* Whether KERNEL_NAME could be mistaken for a shared name. This is so if KERNEL.glsl exists, too,
 * and another kernel of the folder includes it and has NAME at another id. */
static bool is_ambiguous(const kernel *kernels, int count, const kernel *k, uint32_t id)
{
    char source[256];
    snprintf(source, sizeof source, "glsl/%s/%s.glsl", k->folder, k->name);
    for (int i = 0; i < count; i++)
        for (uint32_t other = 0; other < kernels[i].constant_count; other++)
            if (other != id && same_place(&kernels[i], other, k->constants[id]) &&
                strcmp(kernels[i].folder, k->folder) == 0 && has_source(&kernels[i], source))
                return true;
    return false;
}

static void write_constants(const kernel *kernels, int count, const char *out_folder,
                            const char *folder)
{
    char name[256];
    snprintf(name, sizeof name, "constants/%s.h", folder);
    FILE *out = create(out_folder, name);
    for (int i = 0; i < count; i++) {
        const kernel *k = &kernels[i];
        if (strcmp(k->folder, folder) == 0)
            for (uint32_t id = 1; id < k->constant_count; id++)
                if (k->constants[id] && !is_ambiguous(kernels, count, k, id))
                    write_enumerator(out, k->name, k->constants[id], id);
        for (const char *s = k->sources; (s = next_source(s, "glsl/", ".glsl")); s += strlen(s) + 1)
            if (in_folder(s, folder) && is_first(kernels, i, s))
                write_shared(out, kernels, count, s);
    }
    replace(out, out_folder, name, true);
}

int main(int argc, char **argv)
{
    int count = argc - 3;
    if (count < 1)
        die("usage: spv2c OUT_DIR SPV_DIR NAME ...", "arguments");
    kernel *kernels = calloc((size_t)count, sizeof *kernels);
    if (!kernels)
        die("out of memory", "kernels");
    for (int i = 0; i < count; i++)
        read_kernel(&kernels[i], argv[2], argv[3 + i]);
    write_ids(kernels, count, argv[1]);
    write_table(kernels, count, argv[1]);
    for (int i = 0; i < count; i++)
        if (is_first_of_folder(kernels, i))
            write_constants(kernels, count, argv[1], kernels[i].folder);
    for (int i = 0; i < count; i++)
        free_kernel(&kernels[i]);
    free(kernels);
    return 0;
}
