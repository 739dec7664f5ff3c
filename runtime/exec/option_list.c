/*
 * A program gives names as arrays, the environment as one string with commas; where the array is
 * NULL, the string counts. Invariant: names have passed option_list_check, so that none holds a
 * comma or an equals sign and both forms say the same.
 */
#include "exec/option_list.h"

#include <string.h>

static rlxvk_status check_name(const char *name, const char *what)
{
    rlxvk_status status = status_require(name, "compile", what);
    if (status == RLXVK_OK && (!*name || strpbrk(name, ",= ")))
        return status_fail(RLXVK_E_ATTR, "%s: '%.100s' is no name; give one an item", what, name);
    return status;
}

rlxvk_status option_list_check(const rlxvk_compile_options *o)
{
    rlxvk_status status;
    TRY(status_require_items(o->host_ops, o->host_op_count, "compile", "host_ops"));
    TRY(status_require_items(o->variants, o->variant_count, "compile", "variants"));
    for (size_t i = 0; i < o->host_op_count; i++)
        TRY(check_name(o->host_ops[i], "a name in host_ops"));
    for (size_t i = 0; i < o->variant_count; i++) {
        TRY(check_name(o->variants[i].family, "a family in variants"));
        TRY(check_name(o->variants[i].row, "a row in variants"));
    }
error:
    return status;
}

rlxvk_status option_list_keep(rlxvk_compile_options *o, arena *memory)
{
    const char **ops = NULL;
    rlxvk_variant *variants = NULL;
    bool complete = true;
    if (o->host_ops)
        complete = (ops = arena_copy(memory, o->host_ops, o->host_op_count * sizeof *ops));
    if (o->variants)
        complete = complete && (variants = arena_copy(memory, o->variants,
                                                      o->variant_count * sizeof *variants));
    for (size_t i = 0; complete && i < o->host_op_count; i++)
        complete = (ops[i] = arena_copy_string(memory, ops[i]));
    for (size_t i = 0; complete && i < o->variant_count; i++)
        complete = (variants[i].family = arena_copy_string(memory, variants[i].family)) &&
                   (variants[i].row = arena_copy_string(memory, variants[i].row));
    if (!complete)
        return status_fail_memory("compile options");
    o->host_ops = ops;
    o->variants = variants;
    return RLXVK_OK;
}

static rlxvk_status force_row(const char *name, size_t length, const char *what,
                              bool on_host[OP_COUNT])
{
    char row[64] = "";
    memcpy(row, name, MIN(length, sizeof row - 1));
    op_kind op = length < sizeof row ? op_find(row) : OP_COUNT;
    if (op == OP_COUNT)
        return status_fail(RLXVK_E_ATTR, "%s: there is no op '%s'; give row names%s", what, row,
                           strcmp(what, "RLXVK_FORCE_HOST") ? "" : " or all");
    on_host[op] = true;
    return RLXVK_OK;
}

static rlxvk_status force_text(const char *names, bool on_host[OP_COUNT])
{
    rlxvk_status status = RLXVK_OK;
    for (const char *at = names; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "all", 3) == 0)
            memset(on_host, true, OP_COUNT * sizeof *on_host);
        else if (length)
            TRY(force_row(at, length, "RLXVK_FORCE_HOST", on_host));
        at += length;
    }
error:
    return status;
}

rlxvk_status option_list_force(const rlxvk_compile_options *o, const switches *s,
                               bool on_host[OP_COUNT])
{
    rlxvk_status status = RLXVK_OK;
    if (o->force_host == RLXVK_DEFAULT && !o->host_ops)
        return force_text(s->force_host, on_host);
    for (uint32_t i = 0; i < OP_COUNT; i++)
        on_host[i] = o->force_host == RLXVK_ON;
    for (size_t i = 0; i < o->host_op_count; i++)
        TRY(force_row(o->host_ops[i], strlen(o->host_ops[i]), "compile option host_ops", on_host));
error:
    return status;
}

rlxvk_status option_list_variants(const rlxvk_compile_options *o, const switches *s, arena *memory,
                                  const char **out_text, const char **out_source)
{
    size_t size = 1;
    *out_text = s->variant;
    *out_source = "RLXVK_VARIANT";
    if (!o->variants)
        return RLXVK_OK;
    for (size_t i = 0; i < o->variant_count; i++)
        size += strlen(o->variants[i].family) + strlen(o->variants[i].row) + 2;
    text t = {.buffer = arena_allocate(memory, size), .size = size};
    if (!t.buffer)
        return status_fail_memory("compile options");
    for (size_t i = 0; i < o->variant_count; i++)
        text_append(&t, "%s%s=%s", i ? "," : "", o->variants[i].family, o->variants[i].row);
    *out_text = t.buffer;
    *out_source = "compile option variants";
    return RLXVK_OK;
}
