#!/usr/bin/env python3
"""How plain the comments are: per 1,000 words of comments, how often they say if, because, what and where, by folder.

    tools/build/words.py [FOLDER or FILE ...]     default: the folders of the repository, README.md and documents
    tools/build/words.py --long 12                also print the 12 longest sentences

Plain English says "if" and "because" often, and "what" and "where" rarely: FFTW, Lua, libplacebo and libuv have "if" 7.5 to 12 times,
"because" 0.9 to 2.5, "what" 0.3 to 0.8, "where" 0.6 to 1.3. The last columns are the share of sentences of more than 30 words, and the
length that 95 % of the sentences do not exceed.
"""
import argparse, os, re, subprocess, sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))
WORDS = ['if', 'because', 'what', 'where']
FOLDERS = ['include', 'runtime', 'glsl', 'spv', 'tools', 'test', 'README.md']
C_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|/\*(.*?)\*/|//([^\n]*)', re.S)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def c_comments(text):
    return [m.group(1) or m.group(2) for m in C_COMMENT.finditer(text) if m.group(1) or m.group(2)]


def hash_comments(text):
    """Runs of lines that begin with #, and the docstrings of Python."""
    found = re.findall(r'"""(.*?)"""', text, re.S)
    block = []
    for line in text.split('\n') + ['']:
        m = re.match(r'\s*#(?!!)(.*)', line)
        if m:
            block.append(m.group(1))
        elif block:
            found.append('\n'.join(block))
            block = []
    return found


def prose(text):
    """A Markdown document without code blocks, tables and links' targets."""
    text = re.sub(r'```.*?```', '', text, flags=re.S)
    text = re.sub(r'\]\([^)]*\)', ']', text)
    return ['\n'.join('' if line.startswith('|') else line for line in text.split('\n'))]


def comments_of(path):
    with open(os.path.join(ROOT, path), errors='replace') as f:
        text = f.read()
    if path.endswith('.md'):
        return prose(text)
    if re.search(r'\.(c|h|def|comp|glsl|mjs)$', path):
        return c_comments(text)
    return hash_comments(text)


def sentences_of(comment):
    """Sentences of a comment. An empty line, a list item and a row of a table end one, too."""
    lines = [re.sub(r'^\s*\*? ?', '', line) for line in comment.split('\n')]
    parts, part = [], []
    for line in lines:
        apart = not line.strip() or re.match(r'\s*([-*#]|\d+[.)]) ', line) or re.search(r'\S {3,}\S', line)
        if apart and part:
            parts.append(' '.join(part))
            part = []
        if line.strip():
            part.append(line.strip())
    if part:
        parts.append(' '.join(part))
    found = []
    for p in parts:
        found += re.split(r'(?<=[.!?;])\s+(?=[A-Z`"(])', p)
    return found


def files_of(path):
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '--cached', '--others', '--exclude-standard', path], text=True,
                            capture_output=True, check=True).stdout.split('\n')
    skipped = re.compile(r'^test/(data|golden|frozen)/|\.(txt|gguf|bin|json|npz|spv)$')
    return [p for p in listed if p and not skipped.search(p) and re.search(r'\.(c|h|def|comp|glsl|py|sh|md|mjs)$|Makefile$', p)]


class Count:
    def __init__(self):
        self.words, self.hits, self.lengths, self.longest = 0, dict.fromkeys(WORDS, 0), [], []

    def add(self, path):
        for comment in comments_of(path):
            for sentence in sentences_of(comment):
                words = WORD.findall(sentence)
                if len(words) < 3:
                    continue
                self.words += len(words)
                self.lengths.append(len(words))
                self.longest.append((len(words), path, sentence))
                for w in words:
                    if w.lower() in self.hits:
                        self.hits[w.lower()] += 1

    def row(self, name):
        per = {w: 1000 * n / max(self.words, 1) for w, n in self.hits.items()}
        lengths = sorted(self.lengths) or [0]
        above = 100 * sum(n > 30 for n in lengths) / len(lengths)
        return '%-22s %8d %8.2f %8.2f %8.2f %8.2f %9.1f %% %8d' % (name, self.words, per['if'], per['because'], per['what'], per['where'], above,
                                                              lengths[int(0.95 * (len(lengths) - 1))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('paths', nargs='*')
    parser.add_argument('--long', type=int, default=0, help='print so many of the longest sentences')
    options = parser.parse_args()
    paths = options.paths or [f for f in FOLDERS if os.path.exists(os.path.join(ROOT, f))]
    total = Count()
    print('%-22s %8s %8s %8s %8s %8s %11s %8s' % ('comments of', 'words', *WORDS, 'above 30', '95 %'))
    for path in paths:
        count = Count()
        for f in files_of(path):
            count.add(f)
            total.add(f)
        print(count.row(path))
    if len(paths) > 1:
        print(total.row('all'))
    for length, path, sentence in sorted(total.longest, reverse=True)[:options.long]:
        print('\n%d words, %s: %s' % (length, path, sentence))


if __name__ == '__main__':
    sys.exit(main())
