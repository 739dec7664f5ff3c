/*
 * Runs many prompts at once, as many as the model has sequences. Each runs in a place of its own. A
 * step runs all places. If answers have ended, their places get the next prompts, which also run
 * together.
 */
#include "cli/clock.h"
#include "cli/generate.h"
#include "cli/output.h"

/* One sequence of the model. */
typedef struct place {
    batch_item *item; /* NULL: idle */
    uint64_t left;    /* tokens that may still be generated */
} place;

typedef struct batch {
    session *session;
    uint32_t count; /* number of places */
    place *places;
    /* What each place runs next. Of those that do not run, the count is 0. */
    const uint32_t **tokens;
    size_t *counts;
    uint32_t *next;        /* the token that each place generated last */
    size_t given, printed; /* indices of items */
} batch;

/* Prints finished answers in order, so one that ended early waits for those before it. */
static rlxvk_status print_finished(batch *b)
{
    const session *s = b->session;
    rlxvk_status status = RLXVK_OK;
    if (s->options->json)
        return RLXVK_OK;
    for (; b->printed < s->items.count && s->items.items[b->printed].done; b->printed++)
        TRY(generate_print_line(s, &s->items.items[b->printed].made));
error:
    return status;
}

/* Takes a place's new token, which may end the answer. */
static rlxvk_status take_token(batch *b, uint32_t at)
{
    uint32_t token = b->next[at];
    place *p = &b->places[at];
    if (!VECTOR_PUSH(&p->item->made, token))
        return status_fail_memory("tokens");
    if (--p->left > 0 && !rlxvk_tokenizer_is_end(b->session->tokenizer, token))
        return RLXVK_OK;
    p->item->done = true;
    p->item = NULL;
    return print_finished(b);
}

/* Gives a free place the next prompt that leaves room for an answer. */
static rlxvk_status give_prompt(batch *b, uint32_t at)
{
    session *s = b->session;
    place *p = &b->places[at];
    uint64_t room;
    rlxvk_status status = RLXVK_OK;
    b->counts[at] = 0;
    while (!p->item && b->given < s->items.count) {
        batch_item *item = &s->items.items[b->given++];
        TRY(rlxvk_language_rewind(s->language, at));
        TRY(rlxvk_language_room(s->language, at, &room));
        p->left = MIN(s->options->tokens, room - item->prompt.count);
        if (p->left == 0) {
            item->done = true;
            TRY(print_finished(b));
            continue;
        }
        p->item = item;
        b->tokens[at] = item->prompt.items;
        b->counts[at] = item->prompt.count;
    }
error:
    return status;
}

static rlxvk_status run_prompts(batch *b)
{
    session *s = b->session;
    uint64_t tokens = 0;
    double start;
    rlxvk_status status;
    for (uint32_t at = 0; at < b->count; at++)
        tokens += b->counts[at];
    TRY(rlxvk_language_prepare_each(s->language, b->counts));
    start = clock_seconds();
    TRY(rlxvk_language_extend_each(s->language, b->tokens, b->counts, b->next));
    generate_time_prompt(s, clock_seconds() - start, tokens);
error:
    return status;
}

/* Runs once without using the results. Drivers may compile only at the first run, which also
 * touches memory for the first time. */
static rlxvk_status warm_up(batch *b)
{
    rlxvk_status status;
    TRY(run_prompts(b));
    for (uint32_t at = 0; at < b->count; at++)
        TRY(rlxvk_language_rewind(b->session->language, at));
error:
    return status;
}

/* Fills free places, again if an answer ends with its first token. */
static rlxvk_status fill_places(batch *b)
{
    session *s = b->session;
    rlxvk_status status = RLXVK_OK;
    for (bool given = true; given;) {
        given = false;
        for (uint32_t at = 0; at < b->count; at++) {
            TRY(give_prompt(b, at));
            given = given || b->counts[at];
        }
        if (!given)
            break;
        if (s->turns == 0)
            TRY(warm_up(b));
        TRY(run_prompts(b));
        for (uint32_t at = 0; at < b->count; at++)
            if (b->counts[at])
                TRY(take_token(b, at));
    }
error:
    return status;
}

static rlxvk_status step(batch *b, uint32_t active)
{
    session *s = b->session;
    double start;
    rlxvk_status status;
    for (uint32_t at = 0; at < b->count; at++) {
        b->tokens[at] = &b->next[at];
        b->counts[at] = b->places[at].item != NULL;
    }
    start = clock_seconds();
    TRY(rlxvk_language_extend_each(s->language, b->tokens, b->counts, b->next));
    generate_time_step(s, clock_seconds() - start, active);
    for (uint32_t at = 0; at < b->count; at++)
        if (b->places[at].item)
            TRY(take_token(b, at));
error:
    return status;
}

static rlxvk_status run_all(batch *b)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t active = 1; active > 0;) {
        active = 0;
        TRY(fill_places(b));
        for (uint32_t at = 0; at < b->count; at++)
            active += b->places[at].item != NULL;
        if (active)
            TRY(step(b, active));
    }
error:
    return status;
}

rlxvk_status generate_batch(session *s)
{
    batch b = {.session = s, .count = (uint32_t)MIN(s->items.count, s->options->parallel)};
    rlxvk_status status = RLXVK_OK;
    b.places = memory_zeroed(b.count, sizeof *b.places);
    b.tokens = memory_zeroed(b.count, sizeof *b.tokens);
    b.counts = memory_zeroed(b.count, sizeof *b.counts);
    b.next = memory_zeroed(b.count, sizeof *b.next);
    if (!b.places || !b.tokens || !b.counts || !b.next)
        TRY(status_fail_memory("batch"));
    TRY(run_all(&b));
error:
    memory_free(b.places);
    memory_free(b.tokens);
    memory_free(b.counts);
    memory_free(b.next);
    return status;
}
