/* Emits the dispatches of each path of scatter and scatter_nd. */
#include "op/array/scatter_lower.h"
#include "args/movement.h"
#include "constants/array.h"
#include "constants/movement.h"
#include "op/array/scatter.h"
#include "op/movement/layout.h"
#include "op/movement/radix_sort.h"
#include "op/movement/scatter_add_choice.h"

static rlxvk_status emit(lowering *l, dispatch *d, const scatter_work *w, uint64_t count,
                         uint64_t groups, const operand *operands, uint32_t operand_count)
{
    struct scatter_args args = w->args;
    args.count = (u32)count;
    lower_groups(l, d, groups);
    return lower_emit(l, d, &args, sizeof args, operands, operand_count);
}

static rlxvk_status emit_direct(lowering *l, const scatter_work *w, const scatter_path *path)
{
    dispatch d = {.kernel = KERNEL_SCATTER_DIRECT, .variant = path->row.name};
    uint32_t size = l->profile->workgroup_size;
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {SCATTER_DIRECT_MODE, w->mode},
                  {SCATTER_DIRECT_ND, w->nd});
    return emit(l, &d, w, w->numel, groups_for(w->numel, size),
                (operand[]){w->x, w->index, w->source, w->y}, 4);
}

/* Each line has one workgroup. */
static rlxvk_status emit_lines(lowering *l, const scatter_work *w, const scatter_path *path)
{
    dispatch d = {.kernel = KERNEL_SCATTER_LINES, .variant = path->row.name};
    uint32_t threads = MIN(l->profile->max_workgroup_invocations, RADIX_THREADS);
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {SCATTER_LINES_MODE, w->mode});
    return emit(l, &d, w, 0, w->args.lines, (operand[]){w->x, w->index, w->source, w->y}, 4);
}

static rlxvk_status emit_split(lowering *l, const scatter_work *w, const scatter_path *path)
{
    dispatch d = {.kernel = KERNEL_SCATTER_SPLIT, .variant = path->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, RADIX_THREADS}, {SCATTER_SPLIT_MODE, w->mode});
    return emit(l, &d, w, 0, w->args.lines, (operand[]){w->x, w->index, w->source, w->y}, 4);
}

static rlxvk_status emit_tiles(lowering *l, const scatter_work *w, const scatter_path *path)
{
    const struct scatter_args *a = &w->args;
    scatter_problem shape = {a->lines, a->rows, a->updates, a->inner, scatter_is_ordered(w->mode)};
    scatter_division s = scatter_divide(path, &shape, l->profile);
    struct scatter_tile_args args = {.rows = a->rows,
                                     .updates = a->updates,
                                     .inner = a->inner,
                                     .tiles = (u32)s.tiles,
                                     .ranges = (u32)s.ranges,
                                     .groups = (u32)s.groups,
                                     .x_offset = a->x_offset,
                                     .index_offset = a->index_offset,
                                     .updates_offset = a->updates_offset,
                                     .y_offset = a->y_offset};
    bool owners = path->kind == SCATTER_BY_OWNERS;
    dispatch d = {.kernel = owners ? KERNEL_SCATTER_OWNERS : KERNEL_SCATTER_TILES,
                  .variant = path->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, s.threads}, {SCATTER_TILES_MODE, w->mode},
                  {SCATTER_TILES_COLUMNS, s.columns}, {SCATTER_TILES_SLOTS, s.slots});
    if (owners)
        SET_CONSTANTS(&d, {SCATTER_OWNERS_ITEMS, path->items},
                      {SCATTER_OWNERS_SUBGROUPS, s.threads / l->profile->subgroup_size},
                      {SCATTER_OWNERS_WHOLE, s.ranges == 1},
                      {SCATTER_OWNERS_IN_STEP, profile_is_software(l->profile)});
    lower_groups(l, &d, s.groups);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->x, w->index, w->source, w->y}, 4);
}

/* Counts the columns of rows, and all offsets, in units of `width` words. */
static scatter_work in_units(const scatter_work *w, uint64_t columns, uint32_t width)
{
    scatter_work units = *w;
    units.args.inner = (u32)(columns / width);
    units.args.x_offset /= width;
    units.args.updates_offset /= width;
    units.args.y_offset /= width;
    return units;
}

/* Stores the winners in a buffer. If all columns of a row have the same winner, it is stored once
 * for each row. */
static rlxvk_status emit_marks(lowering *l, const scatter_work *w, const scatter_path *path)
{
    bool rows = w->nd && w->mode == SCATTER_ASSIGN;
    uint32_t size = l->profile->workgroup_size;
    uint64_t marks = rows ? w->args.rows : w->numel, columns = rows ? w->args.inner : 1;
    uint64_t bits = columns | w->x.offset | w->source.offset | w->y.offset;
    uint32_t width = rows && bits % 4 == 0 ? 4 : 1;
    dispatch start = {.kernel = KERNEL_SCATTER_MARK, .variant = path->row.name}, mark = start,
             finish = {.kernel = KERNEL_SCATTER_FINISH, .variant = path->row.name};
    scatter_work first = *w, last = in_units(w, columns, width);
    operand winners;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * MAX(marks, 1), &winners));
    first.args.updates_offset = w->x.offset;
    SET_CONSTANTS(&start, {LOCAL_SIZE, size}, {SCATTER_MARK_MODE, w->mode},
                  {SCATTER_MARK_ND, false}, {SCATTER_MARK_START, true});
    TRY(emit(l, &start, &first, marks, groups_for(marks, size), (operand[]){w->x, w->x, winners},
             3));
    SET_CONSTANTS(&mark, {LOCAL_SIZE, size}, {SCATTER_MARK_MODE, w->mode}, {SCATTER_MARK_ND, w->nd},
                  {SCATTER_MARK_START, false});
    uint64_t updates = rows ? w->args.updates : w->updates;
    TRY(emit(l, &mark, w, updates, groups_for(updates, size),
             (operand[]){w->index, w->source, updating(winners)}, 3));
    SET_CONSTANTS(&finish, {LOCAL_SIZE, size}, {SCATTER_FINISH_MODE, w->mode},
                  {SCATTER_FINISH_WIDTH, width});
    TRY(emit(l, &finish, &last, w->numel / width, divide_up(w->numel / width, copy_lot(size)),
             (operand[]){w->x, w->index, w->source, reading(winners), w->y}, 5));
error:
    return status;
}

/* Sorts all updates by their row or element. */
static rlxvk_status emit_sorted(lowering *l, const scatter_work *w, const scatter_path *path)
{
    uint64_t keys = w->nd ? w->args.updates : w->updates, rows = w->nd ? w->args.rows : w->numel;
    uint32_t size = l->profile->workgroup_size;
    dispatch key = {.kernel = KERNEL_SCATTER_KEYS, .variant = path->row.name},
             walk = {.kernel = KERNEL_SCATTER_WALK, .variant = path->row.name};
    radix_sort sort = {.rows = 1, .extent = keys, .bits = radix_sort_bits(rows)};
    uint64_t columns = w->nd ? w->args.inner : 1;
    bool quads = (columns | w->x.offset | w->source.offset | w->y.offset) % 4 == 0;
    uint32_t width = quads ? 4 : 1;
    scatter_work last = in_units(w, columns, width);
    operand starts;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * keys, &sort.words));
    SET_CONSTANTS(&key, {LOCAL_SIZE, size}, {SCATTER_KEYS_ELEMENTS, !w->nd});
    TRY(emit(l, &key, w, keys, groups_for(keys, size), (operand[]){w->index, sort.words}, 2));
    TRY(radix_sort_lower(l, &sort));
    TRY(radix_sort_find_starts(l, &sort, rows, rows + 1, &starts));
    SET_CONSTANTS(&walk, {LOCAL_SIZE, size}, {SCATTER_WALK_MODE, w->mode},
                  {SCATTER_WALK_QUADS, quads});
    operand operands[] = {w->x, w->index, w->source, sort.values, starts, w->y};
    last.args.most = (u32)scatter_longest_run(l->profile);
    for (uint64_t skipped = 0; skipped < keys; skipped += last.args.most) {
        last.args.skipped = (u32)skipped;
        operands[5].access |= skipped > 0 ? ACCESS_READ : 0;
        TRY(emit(l, &walk, &last, w->numel / width, groups_for(w->numel / width, size), operands,
                 ARRAY_COUNT(operands)));
    }
error:
    return status;
}

/* Permutes lines of `length` so that they lie along the last axis instead of the middle one; or
 * back, if `back` is set. */
static rlxvk_status turn(lowering *l, const scatter_work *w, uint64_t length, bool back,
                         operand source, operand target)
{
    int64_t lines = w->args.lines, n = (int64_t)length, inner = w->args.inner;
    int64_t down = back ? n : inner, across = back ? inner : n;
    strided_copy copy = {.rank = 3,
                         .dims = {lines, down, across},
                         .source = {n * inner, 1, down},
                         .target = {n * inner, across, 1}};
    return layout_emit_copy(l, &copy, source, target);
}

typedef rlxvk_status (*emit_function)(lowering *, const scatter_work *, const scatter_path *);

/* For paths that need lines along the last axis. Another axis is made the last one first, and
 * permuted back afterwards. */
static rlxvk_status emit_turned(lowering *l, const scatter_work *w, const scatter_path *path,
                                emit_function emit_last)
{
    uint64_t lengths[] = {w->args.rows, w->args.updates, w->args.updates};
    operand from[] = {w->x, w->index, w->source}, to[3], y;
    scatter_work turned = *w;
    rlxvk_status status;
    if (w->args.inner == 1)
        return emit_last(l, w, path);
    for (int i = 0; i < 3; i++) {
        TRY(lower_temporary(l, 4 * lengths[i] * w->args.lines * w->args.inner, &to[i]));
        TRY(turn(l, w, lengths[i], false, from[i], to[i]));
        to[i] = reading(to[i]);
    }
    TRY(lower_temporary(l, 4 * w->numel, &y));
    turned.args.lines *= w->args.inner;
    turned.args.inner = 1;
    turned.args.x_offset = turned.args.index_offset = 0;
    turned.args.updates_offset = turned.args.y_offset = 0;
    turned.x = to[0];
    turned.index = to[1];
    turned.source = to[2];
    turned.y = y;
    TRY(emit_last(l, &turned, path));
    TRY(turn(l, w, w->args.rows, true, reading(y), w->y));
error:
    return status;
}

rlxvk_status scatter_lower_by(lowering *l, const scatter_work *w, const scatter_path *path)
{
    static const struct {
        emit_function emit;
        bool last; /* needs lines along the last axis */
    } ways[] = {[SCATTER_BY_DIRECT] = {emit_direct}, [SCATTER_BY_LINES] = {emit_lines, true},
                [SCATTER_BY_TILES] = {emit_tiles},   [SCATTER_BY_MARKS] = {emit_marks},
                [SCATTER_BY_OWNERS] = {emit_tiles},  [SCATTER_BY_SPLIT] = {emit_split, true},
                [SCATTER_BY_SORT] = {emit_sorted}};
    emit_function way = ways[path->kind].emit;
    return ways[path->kind].last || path->columns == 1 ? emit_turned(l, w, path, way)
                                                       : way(l, w, path);
}
