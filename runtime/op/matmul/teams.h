/*
 * How the columns of a one-row product are divided among teams. A team is a group of invocations
 * that hold the row (glsl/lib/teams.glsl). A workgroup has as many teams as there is room and work
 * for. There are as many workgroups as the device runs at once, and as many rounds as that takes.
 * Pure.
 */
#ifndef RLXVK_TEAMS_H
#define RLXVK_TEAMS_H

#include "base/profile.h"

#define TEAMS_MOST_ROUNDS 32

typedef struct team_request {
    uint64_t lanes, n; /* invocations that hold the row; columns of weights */
    uint32_t columns;  /* of a team in a round */
    uint32_t threads;  /* of a workgroup, at most */
    uint32_t per_unit; /* workgroups for each compute unit */
} team_request;

typedef struct team_division {
    uint64_t team; /* if it exceeds the request's threads, there is no room */
    uint64_t threads, rounds, groups;
    uint64_t subgroups; /* of a workgroup */
} team_division;

team_division matmul_divide_teams(const team_request *r, const device_profile *profile);
/* Bytes of shared memory: the sums of all rounds, and one sum of squares, for each subgroup. */
uint64_t matmul_team_bytes(const team_division *d, uint64_t columns);

#endif
