#!/usr/bin/env python3
"""Mutation testing: plants one fault at a time in a kernel or in C, builds, and runs the tests that concern it.

Mutants are drawn from a seed, stratified over all folders of kernels, the layers of the runtime and the host references. A mutant
that does not compile, or whose optimized SPIR-V or object code is the same, is replaced by another one. Each of the others is
judged by rounds of tests, from those that find most to those that find what the first do not:

  kernel     its conformance cases, first those that name what the function's name begins or ends with, or an activation that it is
             part of, then one of each pipeline, also of those that only a variant or a precision by name has; with another seed;
             those with NaN, infinities and denormals; with canaries; with operands inside larger tensors; with grids that fold;
             with invocations reversed and permuted; gradients
  host       conformance cases of its ops, golden vectors of its ops, their gradients, and how loose its bounds are
  layer      conformance cases of every op, first those that name what the function's name begins or ends with; with host
             functions; gradients, of runtime/op; the unit tests of its name, header or functions, then of its folder
  C          at last, cases and unit tests with the file under the address sanitizer

Some faults are not planted because they would change nothing or be undefined: one turn more of a loop that is unrolled, over
registers or components of a vector; a larger number in a call of memory_allocate, memory_zeroed or memory_resize.

Survivors are printed with their change. test/mutants/argued.txt lists survivors that change no behaviour, each with its reason;
they do not count. Exit 0 if at least 97 % of the others are killed.
"""
import argparse, collections, glob, hashlib, json, os, random, re, shutil, subprocess, sys, tempfile, threading, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..'))
ARGUED = os.path.join(ROOT, 'test/mutants/argued.txt')
LAYERS = ['graph', 'op', 'plan', 'rewrite', 'spirv', 'program', 'exec', 'vk']
WANTED = 0.97
QUICK = {'cases', 'special values', 'canaries', 'shifted', 'folded', 'reversed', 'permuted', 'host functions', 'gradients'}

# ---- Sites: (name, pattern, replacement). Each match of a pattern on a line of code is a site. ----

OPERATORS = [
    ('relation', r'(?<=[\w)\]]) (<|<=|>|>=) (?=[\w(\-])', {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}),
    ('equality', r'(?<=[\w)\]]) (==|!=) (?=[\w(\-!])', {'==': '!=', '!=': '=='}),
    ('arithmetic', r'(?<=[\w)\]]) (\+|-|\*|/|%) (?=[\w(])', {'+': '-', '-': '+', '*': '+', '/': '*', '%': '/'}),
    ('logic', r' (&&|\|\|) ', {'&&': '||', '||': '&&'}),
    ('number', r'(?<![\w.\[])(\d+)(?=u?\b)(?!\.\d|\w*:)', None),
    ('real', r'(?<![\w.])(\d+\.\d+)(?![\w.])', None),
    ('extreme', r'\b(min|max|MIN|MAX|fmin|fmax)(?=\()', {'min': 'max', 'max': 'min', 'MIN': 'MAX', 'MAX': 'MIN', 'fmin': 'fmax', 'fmax': 'fmin'}),
    ('truth', r'\b(true|false)\b', {'true': 'false', 'false': 'true'}),
    ('negation', r'\bif \((?=[\w!(])', 'if (!'),
    ('update', r' (\+=|-=) ', {'+=': '-=', '-=': '+='}),
]
WHOLE = [
    ('barrier', re.compile(r'^\s*(barrier|memoryBarrierShared|groupMemoryBarrier|memoryBarrierBuffer)\(\);\s*$')),
    ('statement', re.compile(r'^\s*[\w.\[\]>\-+* ]+ (=|\+=|-=|\*=|\|=|&=) .*;\s*$')),
    ('call', re.compile(r'^\s*[a-z_]+\(.*\);\s*$')),
]
# Not mutated, because a larger allocation changes nothing.
ALLOCATION = re.compile(r'\bmemory_(allocate|zeroed|resize)\(')
# Not mutated, because one more turn would use registers beyond an array or a vector. That is undefined, so no test could find it.
UNROLLED = re.compile(r'\[\[unroll\]\]|for \(\w+ (\w) = 0u?; \1 < [234]u?;')
DECLARATION = re.compile(r'^\s*(const|static|uint|int|float|double|bool|vec[234]|uvec[234]|ivec[234]|uint\w*_t|int\w*_t|size_t|char|struct|rlxvk_\w+|\w+ \*?\w+ =)\b')


def code_of(text):
    """The lines of the text, with spaces in place of comments."""
    blank = lambda m: re.sub(r'[^\n]', ' ', m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*', blank, text, flags=re.S).split('\n')


def changed(operator, found):
    kind, _, table = operator
    if kind == 'negation':
        return 'if (!('
    if kind == 'number':
        return str(int(found) + 1)
    if kind == 'real':
        return '1.5' if float(found) == 0 else str(float(found) * 2)
    return table[found]


def closing(line, at):
    depth = 0
    for i in range(at, len(line)):
        depth += line[i] == '('
        depth -= line[i] == ')'
        if depth == 0:
            return i
    return -1


def sites(path):
    """All mutations of a file, as (kind, line number, new line)."""
    with open(path) as f:
        text = f.read()
    original, code, out, head = text.split('\n'), code_of(text), [], True
    for n, line in enumerate(code):
        head = head and '{' not in line
        if line.lstrip().startswith('#') or 'layout(' in line or not line.strip() or '"' in line or head:
            continue
        if path.endswith('.c') and not line.startswith((' ', '\t')):
            continue
        for kind, pattern in WHOLE:
            if pattern.match(line) and not (kind == 'statement' and DECLARATION.match(line)) and not line.strip().startswith('return'):
                out.append((kind, n, ''))
        if re.match(r'^\s*if \(.*\) return;\s*$', line):
            out.append(('guard', n, ''))
        for operator in OPERATORS:
            if operator[0] == 'relation' and UNROLLED.search(line) or operator[0] == 'number' and ALLOCATION.search(line):
                continue
            for m in re.finditer(operator[1], line):
                found, (a, b) = m.group(m.lastindex or 0), m.span(m.lastindex or 0)
                if operator[0] == 'number' and UNROLLED.search(line) and line[:a].endswith(' < '):
                    continue
                new = changed(operator, found)
                if operator[0] == 'negation':
                    end = closing(line, b - 1)
                    if end < 0:
                        continue
                    new = original[n][:a] + 'if (!' + original[n][b - 1:end + 1] + ')' + original[n][end + 1:]
                else:
                    new = original[n][:a] + new + original[n][b:]
                out.append((operator[0], n, new))
    return out


# ---- Which tests concern a file ----

class Concerns:
    """Finds the cases and unit tests of a file by the cases' kernels, the compiler's lists of includes and the op table."""

    def __init__(self):
        environment = dict(os.environ)
        listed = subprocess.run(['build/test/mutant_cases', 'map'], capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
        self.by_kernel, self.by_op, self.anyway = collections.defaultdict(list), collections.defaultdict(list), {}
        self.lock = threading.Lock()
        self.pipelines = collections.defaultdict(set)  # by kernel and case
        for line in listed.stdout.splitlines():
            op, number, *pipelines = line.split()
            if ':' not in number:
                self.by_op[op].append((op, number))
            for kernel, pipeline in (p.split(':') for p in pipelines):
                if not self.pipelines[kernel, op, number]:
                    self.by_kernel[kernel].append((op, number))
                self.pipelines[kernel, op, number].add(pipeline)
        newer = {line.split()[0] for line in open(os.path.join(ROOT, 'spv/MANIFEST')) if line.strip()}
        listed = subprocess.run(['build/bin/rlxvk', 'conform', '--list'], capture_output=True, text=True, cwd=ROOT, env=environment, check=True)
        self.words = collections.defaultdict(set)
        for op, number, line in re.findall(r'^(\w+) (\d+): (.*)$', listed.stdout, re.M):
            self.words[op, number] = set(re.split(r'[ =,:;]', line)) | {op}
        self.kernels_of = collections.defaultdict(set)
        for kernel_file in glob.glob(os.path.join(ROOT, 'glsl/*/*.comp')):
            kernel = os.path.basename(kernel_file)[:-5]
            if kernel in newer or kernel not in self.by_kernel:
                continue
            for name in self.includes(kernel):
                self.kernels_of[name].add(kernel)
        self.ops_of = self.families()

    def includes(self, kernel):
        path = os.path.join(ROOT, 'build/spv/%s.d' % kernel)
        return re.findall(r'glsl/\S+\.(?:comp|glsl)', open(path).read()) if os.path.exists(path) else []

    def families(self):
        text = open(os.path.join(ROOT, 'runtime/op/op.def')).read()
        of_family = collections.defaultdict(list)
        for row, family in re.findall(r'^OP\((\w+), (\w+),', text, re.M):
            of_family[family].append(row)
        self.activations = open(os.path.join(ROOT, 'glsl/args/activation.def')).read()
        of_family['unary'] += re.findall(r'ACTIVATION\(\d+, \w+, (\w+)', self.activations)
        ops, of_folder, texts = {}, collections.defaultdict(set), {}
        for path in glob.glob(os.path.join(ROOT, 'runtime/op/*/*.c')):
            name = os.path.relpath(path, ROOT)
            texts[name] = open(path).read()
            found = re.findall(r'^const op_family (\w+)_family', texts[name], re.M)
            ops[name] = {row for family in found for row in of_family[family]}
            of_folder[os.path.dirname(name)] |= ops[name]
        for name in ops:
            stem = os.path.basename(name)[:-2]
            same = [n for n in ops if ops[n] and os.path.dirname(n) == os.path.dirname(name) and stem.startswith(os.path.basename(n)[:-2])]
            ops[name] = ops[name] or (set().union(*(ops[n] for n in same)) if same else of_folder[os.path.dirname(name)])
        for name, text in texts.items():  # host functions may be called by other files
            for function in re.findall(r'^(?!static)[a-z]\w* \**(\w*_host\w*)\(', text, re.M):
                ops[name] |= set().union(*(ops[n] for n in texts if n != name and function + '(' in texts[n]))
        for name in ops:
            if os.path.dirname(name) == 'runtime/op/compose':  # their ops have no cases under their own names
                ops[name] |= {'scan', 'while', 'if', 'call', 'custom_function'}
        return ops

    def cases(self, path, generator):
        """The cases of a file, mixed, because similar cases find the same faults. For a kernel, cases with new constants come first."""
        if path.startswith('glsl/'):
            kernels = sorted(self.kernels_of[path])
            generator.shuffle(kernels)
            return self.mixed([self.of_kernel(k, generator) for k in kernels[:12]])
        elif path in self.ops_of:
            lots = [list(self.by_op[op]) for op in sorted(self.ops_of[path]) if self.by_op[op]]
        else:
            lots = [list(cases) for _, cases in sorted(self.by_op.items())]
        for lot in lots:
            generator.shuffle(lot)
        generator.shuffle(lots)
        return self.mixed(lots)

    def named(self, path, line, cases):
        """The cases. First come those that contain the begin or end of the function's name, for example mish for mish_slope."""
        function = function_of(os.path.join(ROOT, path), line)
        parts = function.split('_')
        names = {'_'.join(parts[:i]) for i in range(1, len(parts) + 1)} | {'_'.join(parts[i:]) for i in range(len(parts))}
        if path.startswith('glsl/'):
            names |= self.callers(path, function)
            mine = [c for k in sorted(self.kernels_of[path]) for c in self.by_kernel[k] if c[0] in names or names & self.words[c]]
        else:
            mine = [c for lot in self.by_op.values() for c in lot if names & self.words[c]]
        mine = sorted(dict.fromkeys(mine), key=lambda c: c[0] not in names) if len(mine) < 1000 else []
        return mine + [c for c in cases if c not in mine]

    def callers(self, path, function):
        """The activations that use a GLSL function: their row calls it, directly or through other functions."""
        bodies, names, grown = {}, {function} - {'', 'main'}, True
        for name in {path, *glob.glob('glsl/lib/*.glsl', root_dir=ROOT), *glob.glob('glsl/elementwise/*.glsl', root_dir=ROOT)}:
            for head, body in re.findall(r'^[a-z]\w* (\w+)\([^\n]*\n(.*?)^}', open(os.path.join(ROOT, name)).read(), re.M | re.S):
                bodies[head] = set(re.findall(r'\b(\w+)\(', body))
        while grown:
            more = {head for head, called in bodies.items() if called & names} - names
            grown = bool(more)
            names |= more
        rows = re.findall(r'ACTIVATION\(\d+, \w+, (\w+),(.*?)(?=\n\w*ACTIVATION|\n#|\Z)', self.activations, re.S)
        return {row for row, text in rows if set(re.findall(r'\b(\w+)\(', text)) & names}

    def of_kernel(self, kernel, generator):
        cases, seen, first, rest = list(self.by_kernel[kernel]), set(), [], []
        generator.shuffle(cases)
        for case in cases:
            pipelines = self.pipelines[(kernel, *case)]
            (rest if pipelines <= seen else first).append(case)
            seen |= pipelines
        return first + rest

    def mixed(self, lots):
        mixed = []
        for i in range(max([len(lot) for lot in lots] + [0])):
            mixed += [lot[i] for lot in lots if i < len(lot)]
        return list(dict.fromkeys(mixed))[:2000]

    def ops(self, path):
        return sorted(self.ops_of.get(path, []))


def groups(concerns):
    """Files by group: a folder of kernels, a layer, or the host references of a folder of op families."""
    out = collections.defaultdict(list)
    for name in sorted(concerns.kernels_of):
        if concerns.kernels_of[name]:
            out['kernel ' + name.split('/')[1]].append(name)
    for layer in LAYERS:
        out['layer ' + layer] += sorted(os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, 'runtime/%s/*.c' % layer)))
    for name in sorted(concerns.ops_of):
        if concerns.ops(name) and re.search(r'_host\(', open(os.path.join(ROOT, name)).read()):
            out['host ' + name.split('/')[2]].append(name)
    return out


def function_of(path, line):
    """The name of the C function that contains a line."""
    text = open(path).read().split('\n')
    for n in range(line, -1, -1):
        head = re.match(r'^[a-z][\w ]*[ *](\w+)\(', text[n])
        if head:
            return head.group(1)
    return ''


def host_lines(path):
    """The lines of host functions, that is, functions with host or reference in their names."""
    inside, out = False, set()
    for n, line in enumerate(open(path).read().split('\n')):
        if re.match(r'^[a-z].*\w*(host|reference)\w*\(', line) and not line.rstrip().endswith(';'):
            inside = True
        if inside:
            out.add(n)
        if line.startswith('}'):
            inside = False
    return out


# ---- Judging ----

# Only one file is built like this. It still finds errors on other files' memory, because that has red zones, too.
SANITIZED = 'MODE=-O1 -g1 -DNDEBUG -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer'

def unneeded(folder, names):
    """The names that are not copied into a worker's tree. Programs are not needed, because they are linked again there."""
    place = os.path.relpath(folder, ROOT)
    inside = {'.': {'.git', '.gl', '.base'}, 'build': {'asan', 'tsan', 'fuzz', 'examples', 'bin'}}.get(place, set())
    return [n for n in names if n in inside or (place == 'build/test' and os.access(os.path.join(folder, n), os.X_OK) and
                                                os.path.isfile(os.path.join(folder, n)))]


class Worker:
    """Builds and runs one mutant at a time in its own copy of the tree."""

    def __init__(self, index, options, concerns):
        self.options, self.concerns = options, concerns
        self.tree = os.path.join(options.work, 'tree%d' % index)
        shutil.rmtree(self.tree, ignore_errors=True)
        shutil.copytree(ROOT, self.tree, symlinks=True, ignore=unneeded)
        self.environment = dict(os.environ, RLXVK_NO_TUNING='1', XDG_CACHE_HOME=os.path.join(options.work, 'cache%d' % index))
        if options.devices > 1:
            self.environment['RLXVK_DEVICE'] = str(index % options.devices)

    def command(self, words, seconds, text='', tree=None, **environment):
        """Runs a command. Returns its exit status, or None if time ran out."""
        try:
            done = subprocess.run(words, cwd=tree or self.tree, input=text, timeout=seconds, text=True, errors='replace', stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=dict(self.environment, **environment))
            self.said = done.stdout
            return done.returncode
        except subprocess.TimeoutExpired as expired:
            self.said = 'no end within %d s' % seconds
            return None

    def make(self, *goals):
        return self.command(['make', '-s', *goals], 300) == 0

    def digest(self, path):
        if path.startswith('glsl/'):
            names = ['build/spv/%s.spv' % k for k in sorted(self.concerns.kernels_of[path])]
        else:
            names = ['build/%s.o' % path[:-2]]
        h = hashlib.sha256()
        for name in names:
            with open(os.path.join(self.tree, name), 'rb') as f:
                h.update(f.read())
        return h.digest()

    def objects(self, path):
        return ['build/spv/%s.spv' % k for k in self.concerns.kernels_of[path]] if path.startswith('glsl/') else ['build/%s.o' % path[:-2]]

    def judge(self, mutant):
        path, kind, line, new = mutant['path'], mutant['kind'], mutant['line'], mutant['new']
        place = os.path.join(self.tree, path)
        kept = open(place).read()
        self.make(*self.objects(path))  # without the previous mutant
        before = self.digest(path)
        lines = kept.split('\n')
        mutant['old'] = lines[line]
        lines[line] = new
        try:
            with open(place, 'w') as f:
                f.write('\n'.join(lines))
            if not self.make(*self.objects(path)):
                return 'no code'
            if self.digest(path) == before:
                return 'same code'
            if not self.make('build/test/mutant_cases'):
                return 'no code'
            return self.rounds(mutant)
        finally:
            with open(place, 'w') as f:
                f.write(kept)

    def run_cases(self, cases, seconds, seed, mode='run', *more, **environment):
        words = ['build/test/mutant_cases', mode, str(seconds), str(seed), *more]
        while True:
            code = self.command(words, seconds * 10 + 60, ''.join('%s %s\n' % c for c in cases), **environment)
            failed = re.match(r'(\w+) (\S+): ', (self.said or '').strip().split('\n')[-1])
            if code != 1 or not failed or not self.fails_anyway(words, '%s %s\n' % failed.groups(), **environment):
                return code
            cases = [c for c in cases if c != failed.groups()]

    def fails_anyway(self, words, text='', **environment):
        """Whether a failed command also fails without a mutant. Then its failure means nothing."""
        known, key = self.concerns.anyway, (*words, text, *sorted(environment.items()))
        with self.concerns.lock:
            if key not in known:
                said = self.said
                made = self.command(['make', '-s', words[0]], 300, tree=ROOT) == 0
                known[key] = made and self.command(words, 300, text, ROOT, **environment) != 0
                self.said = said
                if known[key]:
                    settings = ['%s=%s' % x for x in sorted(environment.items())]
                    print('     fails without a mutant: %s' % ' '.join([*settings, *words, text]).strip())
            return known[key]

    def rounds(self, mutant):
        path = mutant['path']
        generator = random.Random('%s %d %s' % (path, mutant['line'], mutant['new']))
        cases = self.concerns.cases(path, generator)
        cases = self.concerns.named(path, mutant['line'], cases)
        short, long = self.options.seconds, self.options.seconds * 4
        checks = [('cases', lambda: self.run_cases(cases, short, 1)),
                  ('second seed', lambda: self.run_cases(cases[::-1] if len(cases) < 400 else cases[400:] + cases[:400], short, 2))]
        special = [c for c in cases if 'special' in self.concerns.words[c[0], c[1].split(':')[0]]]
        if special:
            checks += [('special values', lambda: self.run_cases(special, short, 1))]
        if path.startswith('glsl/'):
            checks += [('canaries', lambda: self.run_cases(cases, short, 3, RLXVK_CHECK='canary')),
                       ('shifted', lambda: self.run_cases(cases, short, 1, 'run', 'shifted', RLXVK_CHECK='canary')),
                       ('folded', lambda: self.run_cases(cases, short, 1, 'run', 'folded', RLXVK_CHECK='canary')),
                       ('reversed', lambda: self.run_cases(cases, short, 1, RLXVK_INVOCATIONS='reversed')),
                       ('permuted', lambda: self.run_cases(cases, short, 1, RLXVK_INVOCATIONS='permuted:7'))]
        if mutant['group'].startswith(('host', 'kernel')):
            ops = ','.join(self.concerns.ops(path) or sorted({c[0] for c in cases}))
            checks += [('golden', lambda: self.golden(ops)),
                       ('gradients', lambda: self.run_cases(cases, short, 1, 'gradients'))]
        if mutant['group'].startswith('host'):
            checks += [('bounds', lambda: self.bounds(ops))]
        if mutant['group'].startswith('layer'):
            checks += [('host functions', lambda: self.run_cases(cases, short, 1, 'run', 'host'))]
        if path.startswith('runtime/op/') and mutant['group'].startswith('layer'):
            checks += [('gradients', lambda: self.run_cases(cases, short, 1, 'gradients'))]
        checks += [('unit %s' % t, lambda t=t: self.unit(t)) for t in self.tests(path)]
        checks += [('more cases', lambda: self.run_cases(cases, long * (4 if mutant['group'].startswith('layer') else 1), 4))]
        if path.endswith('.c'):
            checks += [('sanitizers', lambda: self.sanitized(path, cases, short))]
        for name, check in (c for c in checks if c[0] in QUICK or not self.options.quick):
            code = check()
            if code not in (0, 2):
                mutant['said'] = (self.said or '').strip().split('\n')[-1][:200]
                return name
        return None

    def sanitized(self, path, cases, seconds):
        program = os.path.join(self.tree, 'build/test/mutant_cases')
        os.utime(os.path.join(self.tree, path))
        if not self.make(SANITIZED, *self.objects(path)) or not self.make(SANITIZED, 'build/test/mutant_cases'):
            return 0
        try:
            runs = [self.run_cases(cases, seconds, 1, 'run', *more, ASAN_OPTIONS='detect_leaks=0') for more in ((), ('host',))]
            bad = next((r for r in runs if r not in (0, 2)), 0)
        finally:
            os.remove(program)
        return bad or next((1 for t in self.tests(path) if self.sanitized_unit(t)), 0)

    def sanitized_unit(self, test):
        program = os.path.join(self.tree, 'build/test/' + test)
        if os.path.exists(program):
            os.remove(program)
        if not self.make(SANITIZED, 'build/test/' + test):
            return False
        self.command(['build/test/' + test], 240, ASAN_OPTIONS='detect_leaks=0')
        os.remove(program)
        return 'Sanitizer' in self.said or 'runtime error: ' in self.said

    def bounds(self, ops):
        known = ','.join(o for o in ops.split(',') if self.concerns.by_op[o])
        if not self.make('build/test/rlxvk'):
            return 1
        return self.command(['build/test/rlxvk', 'conform', '--bounds', '--op', known, '--jobs', '0'], 240) if known else 0

    def golden(self, ops):
        if not self.make('build/test/rlxvk'):
            return 1
        words = ['build/test/rlxvk', 'conform', '--golden', 'test/golden', '--op', ops, '--jobs', '0']
        code = self.command(words, 120)
        if code and ('no case matches' in (self.said or '') or self.fails_anyway(words)):
            return 0
        return code

    def tests(self, path):
        parts = path.split('/')
        folder = parts[1] if parts[0] == 'glsl' or len(parts) == 3 else parts[2]
        everywhere = sorted(glob.glob(os.path.join(ROOT, 'test/unit/*/test_*.c')))
        own = [t for t in everywhere if path.endswith('.c') and self.is_about(t, path)]
        found = own + [t for t in everywhere if t.split('/')[-2] == folder and t not in own]
        slow = {'test_large', 'test_generate', 'test_sequences', 'test_models'}
        return [n for n in (os.path.basename(t)[:-2] for t in found) if n not in slow]

    def is_about(self, test, path):
        """Whether a unit test has the file's name in its own, includes its header, or calls a function of the file."""
        text, stem = open(test).read(), os.path.basename(path)[:-2]
        defined = set(re.findall(r'^(?!static)[a-z]\w* [\w *]*?\**(\w+)\(', open(os.path.join(ROOT, path)).read(), re.M))
        return stem in os.path.basename(test) or '"%s.h"' % path[8:-2] in text or bool(defined & set(re.findall(r'\b(\w+)\(', text)))

    def unit(self, test):
        words = ['build/test/' + test]
        if not self.make(*words):
            return 1
        code = self.command(words, 240)
        return 0 if code and self.fails_anyway(words) else code


# ---- The whole run ----

def identity(mutant):
    return '%s | %s | %s' % (mutant['path'], mutant['old'].strip(), mutant['new'].strip())


def argued():
    return open(ARGUED).read().split('\n') if os.path.exists(ARGUED) else []


def survivors(path):
    """The survivors in a file of verdicts, without the argued ones. If a changed line has moved, its new place is used."""
    found = []
    for m in (m for m in json.load(open(path)) if not m['by'] and not m['argued']):
        place = os.path.join(ROOT, m['path'])
        lines = open(place).read().split('\n') if os.path.exists(place) else []
        same = [n for n, line in enumerate(lines) if line == m['old']]
        if same:
            line = min(same, key=lambda n: abs(n - m['line']))
            found.append({'group': m['group'], 'path': m['path'], 'kind': m['kind'], 'line': line, 'new': m['new']})
        else:
            print('     its line is gone: %s' % identity(m))
    return found


class Run:
    def __init__(self, options):
        self.options, self.lock = options, threading.Lock()
        self.generator = random.Random(options.seed)
        self.concerns = Concerns()
        self.groups = {g: files for g, files in groups(self.concerns).items() if files and self.wanted(g, files)}
        self.quota, self.results, self.seen, self.skipped = {}, [], set(), collections.Counter()
        self.argued = argued()
        self.end = time.time() + 60 * options.minutes
        self.share()
        self.waiting = survivors(options.again) if options.again else []

    def reason(self, mutant):
        """The reason in argued.txt, which follows the mutant's identity, or None."""
        begin = identity(mutant) + ' | '
        return next((line[len(begin):] for line in self.argued if line.startswith(begin)), None)

    def wanted(self, group, files):
        only = self.options.only
        if not only:
            return True
        files[:] = [f for f in files if f.startswith(only)] if '/' in only else files
        return bool(files) and ('/' in only or group.startswith(only))

    def share(self):
        """Kernels get 70 % of the mutants, layers 15 %, host references 15 %. Groups of a kind share by the square root of their files."""
        parts = {'kernel': 0.7, 'layer': 0.15, 'host': 0.15}
        weights = {g: len(files) ** 0.5 for g, files in self.groups.items()}
        present = sum(parts[k] for k in parts if any(g.startswith(k) for g in weights))
        for g in weights:
            kind = g.split()[0]
            total = sum(w for h, w in weights.items() if h.startswith(kind))
            self.quota[g] = max(1, round(self.options.count * parts[kind] / present * weights[g] / total))

    def draw(self, group):
        for _ in range(1000):
            path = self.generator.choice(self.groups[group])
            full = os.path.join(ROOT, path)
            found = sites(full)
            if group.startswith('host'):
                lines = host_lines(full)
                found = [s for s in found if s[1] in lines]
            by_kind = collections.defaultdict(list)
            for s in found:
                if (path, s[1], s[2]) not in self.seen:
                    by_kind[s[0]].append(s)
            if by_kind:
                kind, line, new = self.generator.choice(by_kind[self.generator.choice(sorted(by_kind))])
                self.seen.add((path, line, new))
                return {'group': group, 'path': path, 'kind': kind, 'line': line, 'new': new}
        return None

    def next(self):
        """The next mutant: one to judge again, or a new one of the group that is furthest behind its quota."""
        with self.lock:
            if time.time() > self.end:
                return None
            if self.options.again:
                return self.waiting.pop(0) if self.waiting else None
            behind = [g for g in self.groups if self.quota[g] > 0]
            if not behind:
                return None
            group = max(behind, key=lambda g: self.quota[g])
            self.quota[group] -= 1
            return self.draw(group)

    def work(self, index):
        worker = Worker(index, self.options, self.concerns)
        while True:
            mutant = self.next()
            if mutant is None:
                return
            begin = time.time()
            by = worker.judge(mutant)
            with self.lock:
                if by in ('no code', 'same code'):
                    self.skipped[by] += 1
                    self.quota[mutant['group']] = self.quota.get(mutant['group'], 0) + 1
                    if self.options.again:
                        print('     %s: %s' % (by, identity(mutant)))
                    continue
                mutant['by'], mutant['seconds'] = by, time.time() - begin
                mutant['argued'] = self.reason(mutant) if by is None else None
                self.results.append(mutant)
                self.tell(mutant)

    def tell(self, m):
        verdict = 'killed by ' + m['by'] if m['by'] else 'argued' if m['argued'] else 'SURVIVED'
        print('%4d %-18s %5.1f s  %s:%d %s: %s' % (len(self.results), m['group'], m['seconds'], m['path'], m['line'] + 1, m['kind'], verdict))
        if not m['by']:
            print('       - %s\n       + %s' % (m['old'].strip(), m['new'].strip()))
        sys.stdout.flush()
        if self.options.json:
            with open(self.options.json, 'w') as f:
                json.dump(self.results, f, indent=1)

    def summary(self):
        rows = collections.defaultdict(collections.Counter)
        for m in self.results:
            rows[m['group']]['killed' if m['by'] else 'argued' if m['argued'] else 'survived'] += 1
        print('\n%-22s %7s %9s %7s' % ('group', 'killed', 'survived', 'argued'))
        total = collections.Counter()
        for g in sorted(rows):
            print('%-22s %7d %9d %7d' % (g, rows[g]['killed'], rows[g]['survived'], rows[g]['argued']))
            total += rows[g]
        judged = total['killed'] + total['survived']
        print('%-22s %7d %9d %7d' % ('all', total['killed'], total['survived'], total['argued']))
        print('\nfound by: ' + ', '.join('%s %d' % x for x in collections.Counter(m['by'].split()[0] for m in self.results if m['by']).most_common()))
        print('not counted: %d that do not compile, %d of the same code' % (self.skipped['no code'], self.skipped['same code']))
        print('%d of %d mutants that change behaviour killed (%.1f %%)' % (total['killed'], judged, 100 * total['killed'] / max(judged, 1)))
        return total['killed'] >= WANTED * judged and judged > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--count', type=int, default=400, help='mutants to judge (400)')
    parser.add_argument('--seed', type=int, default=1, help='of the choice (1)')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='mutants at a time (one a processor)')
    parser.add_argument('--devices', type=int, default=1, help='take the first so many devices by turns (the best one)')
    parser.add_argument('--seconds', type=float, default=4, help='of each round of cases (4)')
    parser.add_argument('--quick', action='store_true', help='no unit tests, no golden vectors, nothing twice: its survivors are to be judged again')
    parser.add_argument('--minutes', type=float, default=1e6, help='begin no mutant after that time')
    parser.add_argument('--only', help='groups of this name ("kernel rows", "host", "layer plan"), or files below this path')
    parser.add_argument('--again', help='judge the survivors in this file, which --json wrote, in place of new mutants')
    parser.add_argument('--json', help='write every mutant and its verdict to this file')
    parser.add_argument('--work', help='folder for the copies of the tree (a new one)')
    options = parser.parse_args()
    given = options.work
    options.work = given or tempfile.mkdtemp(prefix='rlxvk-mutants-')
    os.makedirs(options.work, exist_ok=True)
    run = Run(options)
    threads = [threading.Thread(target=run.work, args=(i,)) for i in range(options.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if not given:
        shutil.rmtree(options.work)
    sys.exit(0 if run.summary() else 1)


if __name__ == '__main__':
    main()
