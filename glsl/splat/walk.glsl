/*
 * Composites the pixels of a tile, front to back. The includer declares `args` and prepared[]. A
 * thread has SPLAT_PIXELS pixels. The entries of the list come through shared memory. Along the ray
 * through a pixel, a splat is nearest at c (see view_axes.glsl), and alpha = o exp(-c . c / 2).
 */
#extension GL_EXT_control_flow_attributes : require
#include "splat/view_axes.glsl"

#define EACH_PIXEL(q) [[unroll]] for (uint q = 0u; q < SPLAT_PIXELS; q++)
#define TILE_PIXELS   (SPLAT_THREADS * SPLAT_PIXELS)
#define BATCHES       4096u
#define NO_ENTRY      0xffffffffu
#define RAY_FLOOR     1e-20
/* Below this transmittance, the earlier one is no longer found by division, because the quotient of
 * numbers near 0 is meaningless. */
#define FAINT        1e-30
#define LARGEST      3e38
#define HALF_IN_BITS 0.721347520 /* 1 / (2 ln 2) */

/* Four vec4 per entry: (o, -r^2 / (2 ln 2), r, 0), and the three rows of the ray's matrix, each
 * with one colour component. */
shared vec4 staged[4 * SPLAT_BATCH];
shared uint living;

struct entry_range {
    uint first, end;
};

entry_range entries_of(uint tile)
{
    uint at = ranges_at() + 2u * tile;
    return entry_range(prepared[at], min(prepared[at + 1u], args.list_most));
}

float prepared_float(uint at)
{
    return uintBitsToFloat(prepared[at]);
}

vec3 prepared_vector(uint at)
{
    return vec3(prepared_float(at), prepared_float(at + 1u), prepared_float(at + 2u));
}

void stage(uint slot, uint entry)
{
    uint splat = prepared[list_at() + entry];
    if (splat >= args.count) {
        staged[4u * slot] = vec4(0.0);
        return;
    }
    uint turn = rotation_at() + 4u * splat, color = args.prepared_offset + 4u * splat;
    mat3 scaled = rotation_of(vec4(prepared_float(turn), prepared_vector(turn + 1u)));
    vec3 inverse = 3.0 * prepared_vector(inverse_at() + 3u * splat);
    for (uint k = 0u; k < 3u; k++)
        scaled[k] *= inverse[k];
    view_axes v = view_axes_of(3.0 * prepared_vector(local_at() + 3u * splat), scaled);
    float fall = -min(HALF_IN_BITS * v.distance * v.distance, LARGEST);
    float opacity = v.distance > 0.0 ? prepared_float(color + 3u) : 0.0;
    staged[4u * slot] = vec4(opacity, fall, v.distance, 0.0);
    for (uint k = 0u; k < 3u; k++)
        staged[4u * slot + 1u + k] = vec4(v.world[k], prepared_float(color + k));
}

float along_ray(vec3 row, vec3 d)
{
    precise float w = fma(row.x, d.x, fma(row.y, d.y, row.z * d.z));
    return w;
}

/*
 * Whether a splat counts for a ray, and its alpha and c. The tests have no branches. The arithmetic
 * is `precise`, because going back must find the same alpha as going forward. Only then division by
 * 1 - alpha undoes the multiplication.
 */
bool meets(uint slot, vec3 d, out float alpha, out vec3 c)
{
    vec4 head = staged[4u * slot];
    vec3 w = vec3(along_ray(staged[4u * slot + 1u].xyz, d),
                  along_ray(staged[4u * slot + 2u].xyz, d),
                  along_ray(staged[4u * slot + 3u].xyz, d));
    precise float aside = fma(w.y, w.y, w.z * w.z), ww = fma(w.x, w.x, aside);
    precise float inverse = 1.0 / ww, seen = head.x * exp2(head.y * (aside * inverse));
    float along = head.z * inverse;
    alpha = seen;
    c = along * vec3(aside, -w.x * w.y, -w.x * w.z);
    return all(bvec3(alpha >= args.alpha_cutoff, w.x < 0.0, ww > RAY_FLOOR));
}

vec3 staged_color(uint slot)
{
    return vec3(staged[4u * slot + 1u].w, staged[4u * slot + 2u].w, staged[4u * slot + 3u].w);
}

/* ---- Pixels ---- */

uint pixel[SPLAT_PIXELS]; /* NO_ENTRY: none */
vec3 ray[SPLAT_PIXELS], gathered[SPLAT_PIXELS];
float left_over[SPLAT_PIXELS]; /* the transmittance */
uint hits[SPLAT_PIXELS];
uint stop[SPLAT_PIXELS];       /* the end of the entries that count, once it is known */
uint faint[SPLAT_PIXELS];      /* first entry that leaves little; the transmittance before it */
float before_faint[SPLAT_PIXELS];

void find_pixels(uint tile, uint chunk)
{
    uint size = args.tile_size, row = tile / args.tiles_wide;
    uvec2 corner = uvec2(tile - row * args.tiles_wide, row) * size;
    EACH_PIXEL(q) {
        uint k = chunk * TILE_PIXELS + q * SPLAT_THREADS + gl_LocalInvocationID.x;
        uint y = k / size, x = corner.x + k - y * size;
        bool inside = y < size && x < args.width && corner.y + y < args.height;
        pixel[q] = inside ? (corner.y + y) * args.width + x : NO_ENTRY;
        ray[q] = inside ? prepared_vector(rays_at() + 3u * pixel[q]) : vec3(0.0);
        gathered[q] = vec3(0.0);
        left_over[q] = 1.0;
        hits[q] = 0u;
        stop[q] = inside ? NO_ENTRY : 0u;
        faint[q] = NO_ENTRY;
    }
}

void composite(uint slot, uint entry)
{
    vec3 color = staged_color(slot);
    EACH_PIXEL(q) {
        float alpha;
        vec3 c;
        if (stop[q] == NO_ENTRY && meets(slot, ray[q], alpha, c)) {
            float before = left_over[q];
            gathered[q] += before * alpha * color;
            left_over[q] = before * (1.0 - alpha);
            hits[q]++;
            if (left_over[q] < args.transmittance_threshold || hits[q] == args.steps_most)
                stop[q] = entry + 1u;
            if (faint[q] == NO_ENTRY &&
                left_over[q] < max(args.transmittance_threshold, FAINT)) {
                faint[q] = entry;
                before_faint[q] = before;
            }
        }
    }
}

/* Loads entries [first, first + SPLAT_BATCH) to shared memory, up to `end`. */
void stage_batch(uint first, uint end)
{
    uint t = gl_LocalInvocationID.x;
    if (t < SPLAT_BATCH && first + t < end)
        stage(t, first + t);
}

void walk(entry_range range)
{
    uint t = gl_LocalInvocationID.x;
    bool any = true;
    for (uint part = range.first; part < range.end && any; part += BATCHES * SPLAT_BATCH) {
        uint part_end = min(part + BATCHES * SPLAT_BATCH, range.end);
        for (uint batch = part; batch < part_end && any; batch += SPLAT_BATCH) {
            if (t == 0u)
                living = 0u;
            barrier();
            stage_batch(batch, range.end);
            bool lives = false;
            EACH_PIXEL(q)
                lives = lives || stop[q] == NO_ENTRY;
            if (lives)
                atomicOr(living, 1u);
            barrier();
            any = living != 0u;
            if (any)
                for (uint slot = 0u; slot < min(SPLAT_BATCH, range.end - batch); slot++)
                    composite(slot, batch + slot);
            barrier();
        }
    }
}

vec3 background()
{
    return prepared_vector(parameters_at() + 6u);
}
