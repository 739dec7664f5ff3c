/* See pattern.h. Matching goes back to the last choice when it gets stuck. What is left to match
 * behind a group is a chain of frames. */
#include "bench/pattern.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REPEATS = 255 };

/* A part of a pattern that is repeated: an atom and how often. */
typedef struct piece {
    const char *atom, *atom_end; /* "(ab)", "[0-9]", "x", "\\." */
    const char *rest;            /* behind the atom and its count */
    int least, most;
} piece;

/* What follows the end of a group. */
typedef struct frame {
    const piece *piece;
    int done;          /* repeats before this one */
    const char *start; /* where it began in the text */
    const char *end;   /* of the pattern around the group */
    const struct frame *then;
    const char *text; /* the whole text */
} frame;

/* Behind a bracket expression; NULL if it does not end. */
static const char *skip_set(const char *at)
{
    at += 1 + (at[1] == '^');
    at += *at == ']';
    while (*at && *at != ']')
        at++;
    return *at ? at + 1 : NULL;
}

/* Behind the atom at `at`; NULL if it is none or does not end. */
static const char *skip_atom(const char *at, const char *end)
{
    int depth = 0;
    if (*at == '[')
        return skip_set(at);
    if (*at == '\\')
        return at + 1 < end ? at + 2 : NULL;
    if (*at != '(')
        return strchr("*+?{|)", *at) ? NULL : at + 1;
    while (at && at < end) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (depth == 0)
            return at + 1;
        at = *at == '[' || *at == '\\' ? skip_atom(at, end) : at + 1;
    }
    return NULL;
}

/* Reads "{2}", "{2,}" or "{2,5}". NULL: it is none of these. */
static const char *read_bounds(const char *at, piece *out)
{
    char *end;
    if (!strchr("0123456789", at[1]))
        return NULL;
    long least = strtol(at + 1, &end, 10), most = least;
    if (*end == ',')
        most = end[1] == '}' ? (end++, MOST_REPEATS) : strtol(end + 1, &end, 10);
    out->least = (int)(least < MOST_REPEATS ? least : MOST_REPEATS + 1);
    out->most = (int)(most < MOST_REPEATS ? most : MOST_REPEATS);
    return *end == '}' && out->least <= out->most ? end + 1 : NULL;
}

static bool read_piece(const char *at, const char *end, piece *out)
{
    *out = (piece){.atom = at, .least = 1, .most = 1};
    out->atom_end = out->rest = skip_atom(at, end);
    if (!out->rest)
        return false;
    if (out->rest < end && strchr("*+?", *out->rest)) {
        out->least = *out->rest == '+';
        out->most = *out->rest == '?' ? 1 : INT_MAX;
        out->rest++;
    } else if (out->rest < end && *out->rest == '{') {
        out->rest = read_bounds(out->rest, out);
    }
    return out->rest != NULL;
}

/* ---- Valid patterns ---- */

static bool is_valid(const char *at, const char *end)
{
    piece p;
    for (bool empty = true; at < end; empty = at[-1] == '|') {
        if (*at == '|') {
            if (empty || at + 1 == end)
                return false;
            at++;
            continue;
        }
        if (!read_piece(at, end, &p))
            return false;
        if (*at == '(' && (p.atom_end == at + 2 || !is_valid(at + 1, p.atom_end - 1)))
            return false;
        at = p.rest;
    }
    return true;
}

bool pattern_is_valid(const char *pattern)
{
    return *pattern && is_valid(pattern, pattern + strlen(pattern));
}

/* ---- Matching ---- */

static bool set_has(const char *at, const char *end, unsigned char letter)
{
    bool negated = at[1] == '^', found = false;
    const char *last = end - 1; /* the bracket that closes it */
    for (at += 1 + negated; at < last; at++) {
        if (at[1] == '-' && at + 2 < last) {
            found = found || ((unsigned char)at[0] <= letter && letter <= (unsigned char)at[2]);
            at += 2;
        } else
            found = found || (unsigned char)*at == letter;
    }
    return found != negated;
}

static bool letter_fits(const piece *p, char letter)
{
    if (letter == 0)
        return false;
    if (*p->atom == '[')
        return set_has(p->atom, p->atom_end, (unsigned char)letter);
    if (*p->atom == '\\')
        return p->atom[1] == letter;
    return *p->atom == '.' || *p->atom == letter;
}

static bool match_branches(const char *at, const char *end, const char *text, const frame *f);
static bool match_piece(const piece *p, int done, const char *end, const char *text,
                        const frame *f);

/* The pattern from `at` to `end`, which has no '|' outside of groups, and then the frames. */
static bool match_sequence(const char *at, const char *end, const char *text, const frame *f)
{
    piece p;
    if (at < end)
        return read_piece(at, end, &p) && match_piece(&p, 0, end, text, f);
    if (!f->piece)
        return true;
    if (text == f->start && f->done >= f->piece->least)
        return false; /* it would match nothing forever */
    return match_piece(f->piece, f->done + 1, f->end, text, f->then);
}

/* The piece after `done` repeats, and then what follows. */
static bool match_piece(const piece *p, int done, const char *end, const char *text, const frame *f)
{
    bool here = *p->atom == '^' ? text == f->text : *p->atom == '$' && *text == 0;
    if (*p->atom == '^' || *p->atom == '$')
        return (here || p->least == 0) && match_sequence(p->rest, end, text, f);
    if (done < p->most) {
        frame group = {p, done, text, end, f, f->text};
        if (*p->atom == '(') {
            if (match_branches(p->atom + 1, p->atom_end - 1, text, &group))
                return true;
        } else if (letter_fits(p, *text) && match_piece(p, done + 1, end, text + 1, f))
            return true;
    }
    return done >= p->least && match_sequence(p->rest, end, text, f);
}

static bool match_branches(const char *at, const char *end, const char *text, const frame *f)
{
    const char *branch = at;
    while (at < end) {
        if (*at != '|') {
            at = skip_atom(at, end) ? skip_atom(at, end) : at + 1; /* a count is no atom */
            continue;
        }
        if (match_sequence(branch, at, text, f))
            return true;
        branch = ++at;
    }
    return match_sequence(branch, end, text, f);
}

bool pattern_matches(const char *pattern, const char *text)
{
    const frame last = {.text = text};
    const char *end = pattern + strlen(pattern);
    for (const char *start = text;; start++) {
        if (match_branches(pattern, end, start, &last))
            return true;
        if (!*start)
            return false;
    }
}
