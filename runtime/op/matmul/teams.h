/*
 * How the columns of a product of one row are divided among teams of invocations that hold the row
 * (glsl/lib/teams.glsl): workgroups of as many teams as there is room for, as many workgroups as
 * the device runs at once, and as many rounds as that takes. Pure.
 */
#ifndef RLXVK_TEAMS_H
#define RLXVK_TEAMS_H

#include "base/profile.h"

#define TEAMS_MOST_ROUNDS 32

typedef struct team_request {
    uint64_t lanes, n; /* invocations that the row takes; columns of weights */
    uint32_t columns;  /* of a round */
    uint32_t threads;  /* of a workgroup, at most */
    uint32_t per_unit; /* workgroups for each compute unit */
} team_request;

typedef struct team_division {
    uint64_t team; /* more than the request's threads: no room */
    uint64_t threads, rounds, groups;
    uint64_t subgroups; /* of a workgroup */
} team_division;

team_division matmul_divide_teams(const team_request *r, const device_profile *profile);
/* Sums that wait, and of squares. */
uint64_t matmul_team_bytes(const team_division *d, uint64_t columns);

#endif
