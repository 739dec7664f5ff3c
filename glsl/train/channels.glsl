/*
 * The channel of elements of [.., channels, inner]. CHANNELS says how to find it. The includer
 * declares CHANNELS and its push constants, args.
 */
struct place {
    uint channel, at; /* at: index in `inner` */
};

place place_of(uint i)
{
    if (CHANNELS == CHANNELS_ONE)
        return place(0u, 0u);
    uint row = i / args.inner;
    return place(row % args.channels, i - row * args.inner);
}

/* Goes to the next element. Returns whether it belongs to another channel. */
bool next_place(inout place p)
{
    if (CHANNELS != CHANNELS_BY_ELEMENT || ++p.at < args.inner)
        return false;
    p.at = 0u;
    p.channel = p.channel + 1u == args.channels ? 0u : p.channel + 1u;
    return true;
}
