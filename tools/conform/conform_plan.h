/*
 * What a process of --jobs must know of its caller if it is no fork, but this program, started
 * again with the same arguments: the cases that are left, and what varies from pool to pool. The
 * caller writes it before each pool, into memory that they share.
 */
#ifndef RLXVK_CONFORM_PLAN_H
#define RLXVK_CONFORM_PLAN_H

#include "conform/conform_job.h"
#include "conform/conform_pool.h"

/* Makes room for the job's cases. */
RLXVK_MUST_CHECK rlxvk_status conform_plan_create(conform_job *j);
void conform_plan_destroy(conform_job *j);

void conform_plan_write(conform_job *j, const conform_pool *pool);
/* Makes the job, which has all cases, and the pool as those of the caller. */
RLXVK_MUST_CHECK rlxvk_status conform_plan_read(conform_job *j, conform_pool *pool);

#endif
