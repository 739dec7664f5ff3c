#!/usr/bin/env python3
"""Writes test/data/onnx_microsoft: node tests of the domain com.microsoft, in the layout of the standard's own.

    test/data/onnx_microsoft.py FOLDER      models and inputs, FOLDER/NAME/...
    node test/data/onnx_microsoft.mjs FOLDER     expected outputs, by onnxruntime (npm install onnxruntime-node)

Quantized results avoid ties, which programs round in several ways. Needs Python's standard library alone. Both give the same bytes in
each run.
"""
import json, os, struct, sys

FLOAT, UINT8, INT8, INT32, INT64, BOOL = 1, 2, 3, 6, 7, 9
FORMAT = {FLOAT: 'f', UINT8: 'B', INT8: 'b', INT32: 'i', INT64: 'q', BOOL: 'B'}


def varint(n):
    n &= (1 << 64) - 1
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n): return varint(field << 3) + varint(n)
def data(field, b): return varint(field << 3 | 2) + varint(len(b)) + b
def text(field, s): return data(field, s.encode())


class Array:
    def __init__(self, type, dims, values): self.type, self.dims, self.values = type, dims, values
    def raw(self): return struct.pack('<%d%s' % (len(self.values), FORMAT[self.type]), *self.values)
    def tensor(self, name=''):
        return (b''.join(number(1, d) for d in self.dims) + number(2, self.type) + data(9, self.raw())
                + (text(8, name) if name else b''))


state = 1


def draw():
    """from -1 to 1"""
    global state
    state = (state * 1664525 + 1013904223) % 2**32
    return (state >> 8) / 2**23 - 1


def count(dims):
    n = 1
    for d in dims: n *= d
    return n


def real(*dims): return Array(FLOAT, dims, [round(draw() * 64) / 64 for _ in range(count(dims))])
def weights(*dims): # of 7 bits: onnxruntime's sums of products saturate on some processors
    return Array(INT8, dims, [round(draw() * 63) for _ in range(count(dims))])
def irregular(*dims): return Array(FLOAT, dims, [draw() for _ in range(count(dims))])
def codes(type, *dims):
    low, high = (0, 255) if type == UINT8 else (-128, 127)
    return Array(type, dims, [min(max(round((draw() + 1) / 2 * (high - low) + low), low), high) for _ in range(count(dims))])
def integers(type, dims, values): return Array(type, dims, values)
def scalar(type, value): return Array(type, (), [value])


def attribute(name, value):
    if isinstance(value, float): return text(1, name) + varint(2 << 3 | 5) + struct.pack('<f', value) + number(20, 1)
    if isinstance(value, int): return text(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, str): return text(1, name) + text(4, value) + number(20, 3)
    return text(1, name) + b''.join(number(8, v) for v in value) + number(20, 7)


def value_info(name, type, dims):
    shape = b''.join(data(1, number(1, d)) for d in dims)
    return text(1, name) + data(2, data(1, number(1, type) + data(2, shape)))


def untyped(name, type, rank):
    shape = b''.join(data(1, text(2, '%s%d' % (name, i))) for i in range(rank))
    return text(1, name) + data(2, data(1, number(1, type) + data(2, shape)))


def write(folder, name, op, operands, outputs, **attributes):
    """operands: None, an Array that is an input, or ('w', Array), a weight; outputs: (type, rank) or None"""
    path = os.path.join(folder, name, 'test_data_set_0')
    os.makedirs(path, exist_ok=True)
    node, graph, inputs = b'', b'', []
    for i, o in enumerate(operands):
        node += text(1, '' if o is None else 'x%d' % i)
        if isinstance(o, tuple):
            graph += data(5, o[1].tensor('x%d' % i))
        elif o is not None:
            graph += data(11, value_info('x%d' % i, o.type, o.dims))
            with open(os.path.join(path, 'input_%d.pb' % len(inputs)), 'wb') as f: f.write(o.tensor())
            inputs.append({'name': 'x%d' % i, 'type': o.type, 'dims': list(o.dims), 'raw': o.raw().hex()})
    for i, o in enumerate(outputs):
        node += text(2, 'y%d' % i if o else '')
        if o: graph += data(12, untyped('y%d' % i, *o))
    node += text(4, op) + b''.join(data(5, attribute(k, v)) for k, v in attributes.items()) + text(7, 'com.microsoft')
    graph = data(1, node) + text(2, 'g') + graph
    model = number(1, 8) + data(7, graph) + data(8, number(2, 17)) + data(8, text(1, 'com.microsoft') + number(2, 1))
    with open(os.path.join(folder, name, 'model.onnx'), 'wb') as f: f.write(model)
    return {'name': name, 'inputs': inputs}


def attention(w):
    H, S, D, B = 2, 3, 4, 2
    q, k, v = (lambda: real(B, S, H * D)), (lambda L=S: real(B, L, H * D)), (lambda L=S: real(B, L, H * D))
    out = [(FLOAT, 3)]
    w('mha_plain', 'MultiHeadAttention', [q(), k(), v()], out, num_heads=H)
    w('mha_bias_causal', 'MultiHeadAttention', [q(), k(), v(), real(3 * H * D)], out, num_heads=H, unidirectional=1)
    w('mha_lengths', 'MultiHeadAttention', [q(), k(5), v(5), None, integers(INT32, (B,), [2, 5])], out, num_heads=H, scale=0.3)
    w('mha_flags_bias', 'MultiHeadAttention', [q(), k(5), v(5), None, integers(INT32, (B, 5), [1, 1, 1, 0, 0, 1, 1, 0, 1, 1]),
      real(1, H, S, 5)], out, num_heads=H)
    present = out + [(FLOAT, 4), (FLOAT, 4)]
    w('mha_past', 'MultiHeadAttention', [q(), k(), v(), None, None, None, real(B, H, 2, D), real(B, H, 2, D)], present,
      num_heads=H, unidirectional=1)
    w('mha_cross', 'MultiHeadAttention', [q(), real(B, H, 5, D), real(B, H, 5, D)], out, num_heads=H)
    w('mha_wide_values', 'MultiHeadAttention', [q(), k(), real(B, S, H * 6)], out, num_heads=H)
    x = lambda: real(B, S, 6)
    w('attention_plain', 'Attention', [x(), real(6, 3 * H * D), real(3 * H * D)], out, num_heads=H)
    w('attention_causal', 'Attention', [x(), real(6, 3 * H * D), real(3 * H * D)], out, num_heads=H, unidirectional=1)
    w('attention_flags', 'Attention', [x(), real(6, 3 * H * D), real(3 * H * D), integers(INT32, (B, S), [1, 1, 0, 1, 1, 1])], out,
      num_heads=H)
    w('attention_past', 'Attention', [x(), real(6, 3 * H * D), real(3 * H * D), None, real(2, B, H, 2, D)], out + [(FLOAT, 5)],
      num_heads=H, unidirectional=1)
    w('attention_sizes', 'Attention', [x(), real(6, 2 * H * D + H * 6), real(2 * H * D + H * 6), None, None, real(B, H, S, S)], out,
      num_heads=H, qkv_hidden_sizes=[H * D, H * D, H * 6])


def grouped(w):
    H, K, S, D = 4, 2, 3, 16
    out = [(FLOAT, 3), (FLOAT, 4), (FLOAT, 4)]
    def case(name, B, S, past, used, total, more=(), **attributes):
        seq = integers(INT32, (B,), [n - 1 for n in used])
        kv = [real(B, K, past, D), real(B, K, past, D)] if past else [None, None]
        w('gqa_' + name, 'GroupQueryAttention', [real(B, S, H * D), real(B, S, K * D), real(B, S, K * D)] + kv
          + [seq, scalar(INT32, total)] + list(more), out, num_heads=H, kv_num_heads=K, **attributes)
    tables = [('w', real(16, D // 2)), ('w', real(16, D // 2))]
    case('prompt', 1, 4, 0, [4], 4)
    case('prompt_batch', 2, 4, 0, [4, 3], 4)
    case('step', 1, 1, 4, [5], 5)
    case('step_scaled', 1, 1, 4, [5], 5, scale=0.2, softcap=1.5)
    case('steps', 1, 3, 4, [7], 7)
    case('buffer', 1, 1, 8, [5], 5)
    case('buffer_prompt', 1, 3, 8, [3], 3)
    case('batch', 2, 1, 4, [5, 3], 5)
    case('batch_buffer', 2, 1, 8, [5, 3], 5)
    case('rotary', 1, 2, 3, [5], 5, tables, do_rotary=1)
    case('rotary_pairs', 2, 1, 4, [5, 3], 5, tables, do_rotary=1, rotary_interleaved=1)
    case('window', 1, 5, 0, [5], 5, local_window_size=2)
    case('window_batch', 2, 1, 6, [7, 4], 7, local_window_size=3)
    w('gqa_packed', 'GroupQueryAttention', [real(1, 3, (H + 2 * K) * D), None, None, None, None, integers(INT32, (1,), [2]),
      scalar(INT32, 3)] + tables, out, num_heads=H, kv_num_heads=K, do_rotary=1)


def quantized(w):
    f = lambda v: ('w', scalar(FLOAT, v))
    for type, zero in ((UINT8, 120), (INT8, -7)):
        z, tag = ('w', scalar(type, zero)), '_u8' if type == UINT8 else '_i8'
        x, y, s = (lambda *d: codes(type, *d)), [(type, 3)], (2, 3, 5)
        w('qlinear_add' + tag, 'QLinearAdd', [x(*s), f(0.03), z, x(3, 1), f(0.02), z, f(0.05), z], y)
        w('qlinear_mul' + tag, 'QLinearMul', [x(*s), f(0.0313), z, x(*s), f(0.0207), z, f(0.0601), z], y)
        w('qlinear_sigmoid' + tag, 'QLinearSigmoid', [x(*s), f(0.05), z, f(0.00390625), ('w', scalar(type, 0 if type == UINT8 else -128))], y)
        w('qlinear_leaky' + tag, 'QLinearLeakyRelu', [x(*s), f(0.05), z, f(0.04), z], y, alpha=0.1)
        w('qlinear_global' + tag, 'QLinearGlobalAveragePool', [x(1, 3, 4, 4), f(0.05), z, f(0.02), z], [(type, 4)], channels_last=0)
        w('qlinear_concat' + tag, 'QLinearConcat', [f(0.04), z, x(*s), f(0.03), z, x(2, 2, 5), f(0.05), z], y, axis=1)
        w('qlinear_pool' + tag, 'QLinearAveragePool', [x(1, 2, 5, 5), f(0.0507), z, f(0.0311), z], [(type, 4)],
          kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        w('qlinear_softmax' + tag, 'QLinearSoftmax', [x(*s), f(0.05), z, f(0.00390625), ('w', scalar(type, 0 if type == UINT8 else -128))], y,
          axis=-1, opset=13)
    w('qgemm', 'QGemm', [codes(UINT8, 3, 4), f(0.02), ('w', scalar(UINT8, 128)), ('w', weights(4, 5)), f(0.03), ('w', scalar(INT8, 0)),
      ('w', integers(INT32, (5,), [100, -50, 0, 7, 900])), f(0.05), ('w', scalar(UINT8, 100))], [(UINT8, 2)])
    w('qgemm_float', 'QGemm', [codes(UINT8, 3, 4), f(0.02), ('w', scalar(UINT8, 128)), ('w', weights(5, 4)), ('w', Array(FLOAT, (5,),
      [0.01, 0.02, 0.03, 0.04, 0.05])), ('w', integers(INT8, (5,), [0] * 5))], [(FLOAT, 2)], transB=1)
    w('dynamic_matmul', 'DynamicQuantizeMatMul', [irregular(3, 4), ('w', weights(4, 5)), f(0.03), ('w', scalar(INT8, 3)), ('w', real(5))],
      [(FLOAT, 2)])
    w('integer_to_float', 'MatMulIntegerToFloat', [codes(UINT8, 3, 4), ('w', weights(4, 5)), f(0.02), ('w', Array(FLOAT, (5,),
      [0.01, 0.02, 0.03, 0.04, 0.05])), ('w', scalar(UINT8, 100)), ('w', integers(INT8, (5,), [0, 1, 2, -3, 4])), ('w', real(5))], [(FLOAT, 2)])
    w('quantize', 'QuantizeLinear', [real(2, 3), ('w', Array(FLOAT, (3,), [0.01, 0.02, 0.03])), ('w', integers(UINT8, (3,), [1, 2, 3]))],
      [(UINT8, 2)], axis=1)
    w('dequantize', 'DequantizeLinear', [codes(INT8, 2, 3), ('w', Array(FLOAT, (3,), [0.01, 0.02, 0.03])), ('w', integers(INT8, (3,), [1, 2, 3]))],
      [(FLOAT, 2)], axis=1)


def others(w):
    for bits in (4, 8):
        K, N, block = 40, 6, 16
        blocks = (K + block - 1) // block
        weights = Array(UINT8, (N, blocks, block * bits // 8), [round((draw() + 1) * 127) for _ in range(N * blocks * block * bits // 8)])
        scales = Array(FLOAT, (N * blocks,), [0.01 + abs(draw()) / 50 for _ in range(N * blocks)])
        zeros = Array(UINT8, (N * ((blocks * bits + 7) // 8),), [round((draw() + 1) * 127) for _ in range(N * ((blocks * bits + 7) // 8))])
        w('matmul_%dbits' % bits, 'MatMulNBits', [real(3, K), ('w', weights), ('w', scales)], [(FLOAT, 2)], K=K, N=N, bits=bits, block_size=block)
        w('matmul_%dbits_zeros' % bits, 'MatMulNBits', [real(3, K), ('w', weights), ('w', scales), ('w', zeros)], [(FLOAT, 2)], K=K, N=N,
          bits=bits, block_size=block)
    ids = integers(INT32, (2, 3), [1, 4, 0, 2, 2, 3])
    segments = integers(INT32, (2, 3), [0, 0, 1, 0, 1, 1])
    norm = [('w', real(8)), ('w', real(8))]
    w('embed', 'EmbedLayerNormalization', [ids, segments, ('w', real(5, 8)), ('w', real(4, 8)), ('w', real(2, 8))] + norm
      + [integers(INT32, (2, 3), [1, 1, 0, 1, 1, 1])], [(FLOAT, 3), (INT32, 1)], epsilon=1e-5)
    w('fused_conv', 'FusedConv', [real(1, 2, 5, 5), ('w', real(3, 2, 3, 3)), ('w', real(3))], [(FLOAT, 4)], kernel_shape=[3, 3],
      pads=[1, 1, 1, 1], activation='Relu')
    w('fused_gemm', 'FusedGemm', [real(3, 4), ('w', real(5, 4)), ('w', real(5))], [(FLOAT, 2)], transB=1, activation='LeakyRelu',
      activation_alpha=0.1)
    w('skip_norm', 'SkipLayerNormalization', [real(2, 3, 8), real(2, 3, 8)] + norm + [('w', real(8))], [(FLOAT, 3), None, None, (FLOAT, 3)],
      epsilon=1e-5)
    w('bias_gelu', 'BiasGelu', [real(2, 3, 8), ('w', real(8))], [(FLOAT, 3)])
    w('fast_gelu', 'FastGelu', [real(2, 3, 8), ('w', real(8))], [(FLOAT, 3)])
    w('quick_gelu', 'QuickGelu', [real(2, 3, 8)], [(FLOAT, 3)])


def recurrent(w):
    S, B, I, H = 4, 1, 6, 8
    for direction, D in (('forward', 1), ('reverse', 1), ('bidirectional', 2)):
        for columns in (False, True):
            scale = lambda: ('w', Array(FLOAT, (D, 4 * H) if columns else (D,), [0.004 + abs(draw()) / 200 for _ in range(D * (4 * H if columns else 1))]))
            zero = ('w', integers(INT8, (D, 4 * H) if columns else (D,), [0] * (D * (4 * H if columns else 1))))
            state = [irregular(D, B, H), irregular(D, B, H)] if columns else [None, None]
            w('dynamic_lstm_%s%s' % (direction, '_columns' if columns else ''), 'DynamicQuantizeLSTM',
              [irregular(S, B, I), ('w', weights(D, I, 4 * H)), ('w', weights(D, H, 4 * H)), ('w', real(D, 8 * H)), None] + state
              + [None, scale(), zero, scale(), zero], [(FLOAT, 4), (FLOAT, 3), (FLOAT, 3)], direction=direction, hidden_size=H)


def matrices(w):
    diagonal = [2.0 * (i % 5 == 0) for i in range(16)]
    for dims in ((4, 4), (2, 3, 4, 4)):
        a = irregular(*dims)
        w('inverse_%d' % len(dims), 'Inverse', [Array(FLOAT, dims, [v + diagonal[i % 16] for i, v in enumerate(a.values)])], [(FLOAT, len(dims))])


def main():
    folder, cases = sys.argv[1], []
    def w(*a, **k): cases.append(write(folder, *a, **k))
    for group in (attention, grouped, quantized, others, recurrent, matrices): group(w)
    with open(os.path.join(folder, 'cases.json'), 'w') as f: json.dump(cases, f)


main()
