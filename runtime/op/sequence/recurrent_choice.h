/* How a recurrent layer goes through its time steps. There is one table, in order of preference.
 * Pure. */
#ifndef RLXVK_RECURRENT_CHOICE_H
#define RLXVK_RECURRENT_CHOICE_H

#include "op/choice/variant.h"
#include "op/sequence/recurrent.h"

enum recurrent_way {
    RECURRENT_SEQUENCES, /* all steps of a batch row and direction: a workgroup (recurrent.comp) */
    RECURRENT_TILES,     /* a dispatch a step: tiles of units by batch rows (recurrent_tile.comp) */
    RECURRENT_STEPS      /* a dispatch a step: a few units by a few batch rows */
};

typedef struct recurrent_class {
    choice_row row;
    uint8_t way;
    uint16_t threads;       /* of a tile; 0: another way */
    uint8_t octets;         /* of batch rows in a tile */
    uint8_t stage, buffers; /* columns of W_hh in shared memory at a time; number of buffers */
} recurrent_class;

/* There always is one. */
const recurrent_class *recurrent_choose(const recurrent_geometry *r, const device_profile *profile,
                                        size_t forced);
/* Quads of rows of W_hh that all tiles of a layer have, for both directions. */
uint64_t recurrent_tile_quads(const recurrent_geometry *r);
/* Units of a tile. */
uint64_t recurrent_tile_units(const recurrent_geometry *r);

#endif
