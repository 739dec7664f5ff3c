/* The packed matrices of a and b that belong to a batch. The includer's push constants, `args`, are
 * matrix_product_args. */
uvec2 batch_matrices(uint batch)
{
    uvec2 index = uvec2(0);
    [[dont_unroll]] for (uint axis = 0; axis < 5; axis++) {
        uint coordinate = batch % args.batch_dims[axis];
        batch /= args.batch_dims[axis];
        index += coordinate * uvec2(args.a_batch_strides[axis], args.b_batch_strides[axis]);
    }
    return index + batch * uvec2(args.a_batch_strides[5], args.b_batch_strides[5]);
}
