/* The search in a kind's table, and the table of kernel kinds. */
#include "op/choice/choice.h"

#include <string.h>

const kernel_kind choice_kinds[CHOICE_COUNT] = {
#define KIND(name, ops, precisions) [CHOICE_##name] = {#name, ops, &name##_choice, precisions},
#include "op/choice/choice.def"
};

/* Software is asked first, because a software device is portable, too. */
enum choice_setting choice_setting_of(const device_profile *profile)
{
    if (profile_is_software(profile))
        return ON_SOFTWARE;
    return profile->portable ? ON_TRANSLATED : ON_NATIVE;
}

/* Whether the device has the subgroup operations that the row needs, and whole subgroups. */
static bool has_subgroups(const choice_row *r, const choice_fit *f, const device_profile *p)
{
    if (!(r->conditions & (NEEDS_SHUFFLES | NEEDS_BALLOTS)))
        return true;
    return (!(r->conditions & NEEDS_SHUFFLES) || p->subgroup_shuffle) &&
           (!(r->conditions & NEEDS_BALLOTS) || p->subgroup_ballot) &&
           f->threads % p->subgroup_size == 0 && f->threads <= p->max_shuffle_invocations;
}

/* Without these the result would be wrong, or the kernel would not run. So a preferred row needs
 * them, too. */
static bool can(const choice_row *r, const choice_fit *f, const device_profile *p)
{
    return f->can && f->threads <= p->max_workgroup_invocations &&
           f->shared_bytes <= p->shared_memory_bytes && has_subgroups(r, f, p) &&
           (!(r->conditions & NEEDS_BYTE_PRODUCTS) || p->byte_products);
}

/* Without these the kernel would only be slow. A row that the caller named or that was measured to
 * be fast does not need them. */
static bool suits(const choice_row *r, const choice_fit *f, const device_profile *p)
{
    uint64_t registers = (uint64_t)f->kept + (p->loads_early ? f->loaded : 0);
    return f->suits && registers <= profile_registers(p, f->threads) &&
           (!(r->conditions & IF_QUICK_BYTES) || p->quick_byte_products) &&
           (!(r->conditions & IF_FILLS) || profile_filled(p, f->groups));
}

const void *choice_row_at(const choice_table *table, size_t index)
{
    return (const char *)table->rows + index * table->row_bytes;
}

/* The first suitable row without a cost ends the search, because the order of rows decides. Rows
 * with a cost are compared until then. */
static const void *walk(const choice_table *t, const void *problem, const device_profile *p)
{
    const choice_row *best = NULL,
                     *last = t->last_takes_all ? choice_row_at(t, t->count - 1) : NULL;
    double least = 0;
    for (size_t i = 0; i < t->count; i++) {
        const choice_row *r = choice_row_at(t, i);
        if (!(r->settings & choice_setting_of(p)))
            continue;
        choice_fit f = t->fit(r, problem, p);
        if (!can(r, &f, p))
            continue;
        if (!t->last_takes_all)
            last = r;
        if (!suits(r, &f, p) || (best && !(f.cost > 0 && f.cost < least)))
            continue;
        best = r;
        least = f.cost;
        if (!(f.cost > 0))
            break;
    }
    return best ? best : last;
}

const void *choice_select(const choice_table *table, const void *problem,
                          const device_profile *profile, size_t preferred)
{
    if (preferred < table->count) {
        const choice_row *r = choice_row_at(table, preferred);
        choice_fit f = table->fit(r, problem, profile);
        if (can(r, &f, profile))
            return r;
    }
    return walk(table, problem, profile);
}

const char *choice_row_name(const kernel_kind *kind, size_t index)
{
    const choice_table *t = kind->table;
    return index < t->count ? ((const choice_row *)choice_row_at(t, index))->name : NULL;
}

/* Compares with a part of a longer text ("kind=row,..."), which has no 0 after the word. */
static bool is_word(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && strncmp(name, word, length) == 0;
}

const kernel_kind *choice_find_kind(const char *name, size_t length)
{
    for (size_t i = 0; i < CHOICE_COUNT; i++)
        if (is_word(choice_kinds[i].name, name, length))
            return &choice_kinds[i];
    return NULL;
}

size_t choice_find_row(const kernel_kind *kind, const char *name, size_t length)
{
    for (size_t i = 0; i < kind->table->count; i++)
        if (is_word(choice_row_name(kind, i), name, length))
            return i;
    return VARIANT_NONE;
}

/* `ops` is a list with commas. Items are compared as a whole, so that "fft" is not found in
 * "rfft_block". */
bool choice_reaches(const kernel_kind *kind, const char *op)
{
    const char *item = kind->ops;
    while (item && !is_word(op, item, strcspn(item, ",")))
        item = strchr(item, ',') ? strchr(item, ',') + 1 : NULL;
    return item;
}
