/* See teams.h. */
#include "base/base.h"
#include "op/matmul/teams.h"

team_division matmul_divide_teams(const team_request *r, const device_profile *profile)
{
    uint64_t lanes = MAX(profile->subgroup_size, 1u);
    uint64_t at_once = r->per_unit * (uint64_t)MAX(profile->compute_units, 1u);
    uint64_t batches = MAX(divide_up(r->n, r->columns), 1);
    team_division d = {.team = round_up(MAX(r->lanes, 1), lanes)};
    uint64_t teams = MAX(MIN(r->threads / d.team, divide_up(batches, at_once)), 1);
    d.threads = teams * d.team;
    d.subgroups = d.threads / lanes;
    d.rounds = MIN(divide_up(batches, teams * at_once), TEAMS_MOST_ROUNDS);
    d.groups = divide_up(batches, teams * d.rounds);
    if (d.rounds > 1) /* all are equally busy, except in the last round */
        d.groups = MAX(d.groups, at_once);
    return d;
}

uint64_t matmul_team_bytes(const team_division *d, uint64_t columns)
{
    return (d->rounds * columns + 1) * d->subgroups * sizeof(float);
}
