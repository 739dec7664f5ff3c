// Writes the expected outputs of the tests that onnx_microsoft.py has made: node onnx_microsoft.mjs FOLDER. Needs the package
// onnxruntime-node, from the present folder's node_modules. Deletes a test that onnxruntime refuses, and says so.
import fs from 'fs';
import path from 'path';
import {createRequire} from 'module';
const ort = createRequire(path.join(process.cwd(), 'x.js'))('onnxruntime-node');
const folder = process.argv[2];
const kinds = {1: ['float32', Float32Array], 2: ['uint8', Uint8Array], 3: ['int8', Int8Array], 6: ['int32', Int32Array],
               7: ['int64', BigInt64Array], 9: ['bool', Uint8Array]};

const varint = n => {
    const out = [];
    for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 + 128);
    return Buffer.from([...out, n]);
};
const number = (field, n) => Buffer.concat([varint(field << 3), varint(n)]);
const data = (field, b) => Buffer.concat([varint(field << 3 | 2), varint(b.length), b]);

for (const c of JSON.parse(fs.readFileSync(path.join(folder, 'cases.json')))) {
    const at = path.join(folder, c.name), feeds = {};
    for (const i of c.inputs) {
        const raw = new Uint8Array(Buffer.from(i.raw, 'hex'));
        feeds[i.name] = new ort.Tensor(kinds[i.type][0], new kinds[i.type][1](raw.buffer, 0, raw.length / kinds[i.type][1].BYTES_PER_ELEMENT), i.dims);
    }
    try {
        const session = await ort.InferenceSession.create(path.join(at, 'model.onnx'), {graphOptimizationLevel: 'disabled', logSeverityLevel: 4});
        const results = await session.run(feeds);
        session.outputNames.forEach((name, i) => {
            const t = results[name], type = Object.keys(kinds).find(k => kinds[k][0] === t.type);
            const bytes = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength);
            fs.writeFileSync(path.join(at, 'test_data_set_0', `output_${i}.pb`),
                Buffer.concat([...t.dims.map(d => number(1, d)), number(2, Number(type)), data(9, bytes)]));
        });
    } catch (e) {
        console.log(c.name, String(e).slice(0, 200));
        fs.rmSync(at, {recursive: true});
    }
}
fs.rmSync(path.join(folder, 'cases.json'));
