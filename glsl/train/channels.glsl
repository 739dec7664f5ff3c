/*
 * The channel of elements of [.., channels, inner], as CHANNELS says it is found. The includer has
 * declared CHANNELS and its push constants, args.
 */
struct place {
    uint channel, at; /* at: of `inner` */
};

place place_of(uint i)
{
    if (CHANNELS == CHANNELS_ONE)
        return place(0u, 0u);
    uint row = i / args.inner;
    return place(row % args.channels, i - row * args.inner);
}

/* Goes on to the next element; whether that is another channel's. */
bool next_place(inout place p)
{
    if (CHANNELS != CHANNELS_BY_ELEMENT || ++p.at < args.inner)
        return false;
    p.at = 0u;
    p.channel = p.channel + 1u == args.channels ? 0u : p.channel + 1u;
    return true;
}
