/* Cases of einsum: equation=.. (in=a;b;..). */
#include "conform/cases/cases.h"

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    return rlxvk_einsum(g, case_word(s, "equation", ""), inputs, s->input_count);
}

static const char *const lines[] = {
    "equation=ij,jk->ik in=a:f32:5x7;b:f32:7x9",
    "equation=ij,jk in=a:f32:5x7;b:f32:7x9",
    "equation=ij,kj->ki in=a:f32:5x7;b:f32:9x7",
    "equation=bij,bjk->bik in=a:f32:3x5x7;b:f32:3x7x9",
    "equation=bhqd,bhkd->bhqk in=a:f32:2x3x5x8;b:f32:2x3x6x8",
    "equation=bqhd,bkhd->bhqk in=a:f32:2x5x3x8;b:f32:2x6x3x8",
    "equation=bhqk,bkhd->bqhd in=a:f32:2x3x5x6;b:f32:2x6x3x8",
    "equation=...ij,...jk->...ik in=a:f32:2x3x5x7;b:f32:3x7x9",
    "equation=...ij,...jk in=a:f32:2x1x5x7;b:f32:3x7x9",
    "equation=...,... in=a:f32:2x1x4;b:f32:3x1",
    "equation=i...,i...->... in=a:f32:4x2x3;b:f32:4x3",
    "equation=i,j->ij in=a:f32:5;b:f32:7",
    "equation=i,i-> in=a:f32:300;b:f32:300",
    "equation=i,i->i in=a:f32:300;b:f32:300",
    "equation=i,i in=a:f32:33;b:f32:33",
    "equation=ij->ji in=a:f32:5x7",
    "equation=ij->j in=a:f32:5x7",
    "equation=ij-> in=a:f32:5x7",
    "equation=ji in=a:f32:5x7",
    "equation=ba in=a:f32:5x7",
    "equation=bA in=a:f32:5x7",
    "equation=ii->i in=a:f32:6x6",
    "equation=ii in=a:f32:6x6",
    "equation=iij->ij in=a:f32:6x6x3",
    "equation=iji->j in=a:f32:6x5x6",
    "equation=iji->ij in=a:f32:4x3x4:special",
    "equation=jiik->kij in=a:f32:2x4x4x3",
    "equation=ii->i in=a:f32:1x1",
    "equation=ii-> in=a:f32:4099x4099",
    "equation=iji->j in=a:f32:3x0x3",
    "equation=iii->i in=a:f32:4x4x4",
    "equation=iijj->ij in=a:f32:4x4x3x3",
    "equation=...ii->...i in=a:f32:2x5x5",
    "equation=ii,ij->j in=a:f32:5x5;b:f32:5x7",
    "equation=ij,jk,kl->il in=a:f32:4x5;b:f32:5x6;c:f32:6x3",
    "equation=ij,jk,kl in=a:f32:4x5;b:f32:5x6;c:f32:6x3",
    "equation=ij,ij,ij->i in=a:f32:4x5;b:f32:4x5;c:f32:4x5",
    "equation=bi,oij,bj->bo in=a:f32:3x4;b:f32:2x4x5;c:f32:3x5",
    "equation=a,b,c,d->dcba in=a:f32:2;b:f32:3;c:f32:4;d:f32:5",
    "equation=abcd,cdef->fabe in=a:f32:2x3x4x5;b:f32:4x5x3x2",
    "equation=abcd,dcba-> in=a:f32:2x3x4x5;b:f32:5x4x3x2",
    "equation=abc,ad->bd in=a:f32:4x2x3;b:f32:4x5",
    "equation=ab,cd->ac in=a:f32:4x2;b:f32:3x5",
    "equation=abcdefgh->hgfedcba in=a:f32:2x1x2x3x1x2x1x2",
    "equation=, in=a:f32:scalar;b:f32:scalar",
    "equation=,i->i in=a:f32:scalar;b:f32:5",
    "equation=->  in=a:f32:scalar",
    "equation=ij,jk->ik in=a:f32:5x0;b:f32:0x9",
    "equation=ij,jk->ik in=a:f32:0x5;b:f32:5x9",
    "equation=ii->i in=a:f32:0x0",
    "equation=ij,jk->ik in=a:f32:1x1:one;b:f32:1x1:one",
    "equation=ij,jk->ik in=a:f32:5x7:special;b:f32:7x9:unit",
    "equation=ij,jk->ik in=a:f32:70x130;b:f32:130x65",
    "equation=zZ,Zz->z in=a:f32:3x4;b:f32:4x3",
};

static const char *const errors[] = {
    "expect=E_SHAPE equation=ij,jk->ik in=a:f32:5x7;b:f32:8x9",
    "expect=E_SHAPE equation=ij,jk->ik in=a:f32:5x7;b:f32:7x9x2",
    "expect=E_SHAPE equation=ijk->ik in=a:f32:5x7",
    "expect=E_SHAPE equation=...i,...i in=a:f32:2x5;b:f32:3x5",
    "expect=E_SHAPE equation=ii in=a:f32:5x7",
    "expect=E_ATTR equation=abcde,fghij->abcdefghij in=a:f32:1x1x1x1x1;b:f32:1x1x1x1x1",
    "expect=E_ATTR equation=ij->ix in=a:f32:5x7",
    "expect=E_ATTR equation=ij->ii in=a:f32:5x7",
    "expect=E_ATTR equation=i1->i in=a:f32:5x7",
    "expect=E_ATTR equation=ij-i in=a:f32:5x7",
    "expect=E_ATTR equation=ij->i,j in=a:f32:5x7",
    "expect=E_ATTR equation=...i...->i in=a:f32:5x7",
    "expect=E_ARITY equation=ij,jk in=a:f32:5x7",
    "expect=E_ARITY equation=ij in=a:f32:5x7;b:f32:7x9",
    "expect=E_DTYPE equation=ij,jk in=a:u8:5x7:bytes;b:f32:7x9",
};

static void generate(case_list *list)
{
    case_add_all(list, "einsum within=2e-6", lines, COUNT(lines));
    case_add_all(list, "einsum", errors, COUNT(errors));
}

static const char *const rows[] = {"einsum", NULL};

const case_family einsum_cases = {rows, build, generate};
