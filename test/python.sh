#!/bin/sh
# Tests the Python package in $BUILD/python: test/python.sh [PYTEST ARGUMENTS]. Without arguments it runs
# all tests. The last line is "N passed, N failed".
cd "$(dirname "$0")/.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
export BUILD PYTHONPATH="$BUILD/python" PYTHONDONTWRITEBYTECODE=1 RLXVK_NO_TUNING=1
unset RLXVK_LIBRARY
python=$(tools/python/interpreter.sh cffi numpy pytest) || exit 1
[ $# -gt 0 ] || set -- test/python
report=$BUILD/test/python.xml
"$python" -m pytest -q -p no:cacheprovider --tb=short --junit-xml="$report" "$@"
status=$?
# The first line of the report counts the tests.
"$python" - "$report" <<'END'
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1]).getroot()[0].attrib
failed = int(suite["failures"]) + int(suite["errors"])
print(f"{int(suite['tests']) - failed - int(suite['skipped'])} passed, {failed} failed")
END
exit $status
