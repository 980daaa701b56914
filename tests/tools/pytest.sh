#!/bin/sh
# Runs pytest on one directory of tests: pytest.sh DIRECTORY [PYTEST ARGUMENTS...]
# A directory without test files is told and passes; one whose files hold no test that runs fails.
set -u
directory=$1

if [ -z "$(find "$directory" -name 'test_*.py' 2>/dev/null)" ]; then
    echo "no tests in $directory yet"
    exit 0
fi
status=0
python -m pytest -q "$@" || status=$?
# pytest says 5 when every file skipped itself
if [ "$status" -eq 5 ] && [ "$directory" = tests/corpus ] && [ ! -d ../shared/corpus ]; then
    exit 0
fi
exit "$status"
