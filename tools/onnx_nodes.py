#!/usr/bin/env python3
"""Runs node tests of ONNX through rlxvk run, and counts what passed, is wrong, or is refused and why.

    tools/onnx_nodes.py FOLDER|ARCHIVE... [--program build/bin/rlxvk] [--list FILE] [--only TEXT] [--ops]

A test is a folder with model.onnx and test_data_set_*/, which has input_N.pb and output_N.pb. Tolerances are those of the
standard's own runner: 1e-3 relative, 1e-7 absolute, or 2^-22 of the largest element; integers must be equal. --list writes a line a test: verdict, test,
reason. --ops counts by op instead of by reason. Needs Python's standard library alone. Exits 1 if a test is wrong or failed.
"""
import argparse, collections, os, re, subprocess, sys, tarfile, tempfile


def unpack(paths, room):
    """folders; archives (.tar.gz, .tar.xz) are unpacked into the folder `room`"""
    for i, path in enumerate(paths):
        if os.path.isdir(path):
            yield path
            continue
        folder = os.path.join(room, str(i))
        with tarfile.open(path) as archive:
            archive.extractall(folder)
        yield folder


def find(folders, only):
    """model and data folder of each test"""
    for folder in folders:
        for path, names, files in sorted(os.walk(folder)):
            if 'model.onnx' not in files or (only and only not in path):
                continue
            for data in sorted(n for n in names if n.startswith('test_data_set_')):
                yield os.path.join(path, 'model.onnx'), os.path.join(path, data)


def run(program, jobs):
    """(model, verdict, reason) of each job. If the program dies, the job that it was at has failed, and the rest goes on."""
    at = 0
    while at < len(jobs):
        with tempfile.NamedTemporaryFile('w', suffix='.txt') as file:
            file.write(''.join('%s\t%s\n' % job for job in jobs[at:]))
            file.flush()
            done = subprocess.run([program, 'run', '--list', file.name], stdout=subprocess.PIPE, text=True, errors='replace')
        lines = [line.split('\t', 2) for line in done.stdout.splitlines() if line.count('\t') >= 2]
        for (model, _), (verdict, name, why) in zip(jobs[at:], lines):
            assert name == model, (name, model)
            yield model, verdict, why
        at += len(lines)
        if done.returncode not in (0, 1) or not lines:
            if at < len(jobs):
                yield jobs[at][0], 'failed', 'the program ended with status %d' % done.returncode
                at += 1


def reason(why):
    """the first problem, without names and numbers"""
    why = re.sub(r"^(\S+) '.*?'(, attribute \S+?)?: ", r'\1\2: ', why)
    why = re.sub(r"(^| )'.*?'( |:|;|,|$)", r'\1..\2', why)
    return re.sub(r'\d[\d.e+-]*', 'N', why.split('  ')[0])[:150]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('folders', nargs='+', metavar='FOLDER|ARCHIVE')
    p.add_argument('--program', default=os.path.join(os.path.dirname(__file__), '..', 'build', 'bin', 'rlxvk'))
    p.add_argument('--list')
    p.add_argument('--only')
    p.add_argument('--ops', action='store_true')
    o = p.parse_args()
    verdicts, reasons, lines = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as room:
        results = list(run(o.program, list(find(unpack(o.folders, room), o.only))))
    for model, verdict, why in results:
        test = os.path.basename(os.path.dirname(model))
        verdicts[verdict] += 1
        lines.append('%s\t%s\t%s' % (verdict, test, why))
        if verdict in ('wrong', 'failed'):
            print('%s %s: %s' % (verdict, test, why))
        elif verdict == 'refused':
            reasons[why.split(' ')[0] if o.ops else reason(why)] += 1
    for why, count in reasons.most_common():
        print('%5d refused  %s' % (count, why))
    if o.list:
        with open(o.list, 'w') as file:
            file.write('\n'.join(lines) + '\n')
    print('%d wrong, %d refused' % (verdicts['wrong'], verdicts['refused']))
    print('%d passed, %d failed' % (verdicts['passed'], verdicts['wrong'] + verdicts['failed']))
    return 1 if verdicts['wrong'] or verdicts['failed'] or not verdicts['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
