#!/bin/sh
# Prints the first Python that has all these modules: tools/python/interpreter.sh cffi numpy. It tries $PYTHON, python3, and the
# system's, because packages of the system are not there for a python3 that comes earlier on the PATH. Exits 1 if none has them.
modules=$(printf ',%s' "$@")
for python in ${PYTHON:-} python3 /usr/bin/python3; do
    "$python" -c "import ${modules#,}" 2>/dev/null || continue
    echo "$python"
    exit 0
done
echo "python: no Python has the modules: $*; tools/build/deps.sh test installs them" >&2
exit 1
