#!/bin/sh
# Brings a virtual environment up to date: venv.sh VENV REQUIREMENTS...
# Does nothing while Python, place and requirements are those of the last time. PYTHON names the interpreter.
set -eu
venv=$1
shift
python=${PYTHON:-python3}
log=$venv.log

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

command -v "$python" >/dev/null || die "$python not found; install python3 or set PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$python is $("$python" --version 2>&1), ansible-core 2.19 needs Python 3.11 or later; set PYTHON=/path/to/one"
"$python" -c 'import ensurepip' 2>/dev/null ||
    die "$python cannot make virtual environments; on Debian: apt-get install python3-venv"

mkdir -p "$(dirname "$venv")"
# One at a time: a second pip in the same environment leaves half of it.
exec 9>"$venv.lock"
flock 9

key=$({ "$python" -c 'import sys; print(sys.version, sys.base_prefix)'; pwd; cat "$@"; } | cksum)
[ "$(cat "$venv/.key" 2>/dev/null)" != "$key" ] || exit 0

printf 'setting up %s (log: %s)\n' "$venv" "$log"
"$python" -m venv --clear "$venv" >"$log" 2>&1 || {
    cat "$log" >&2
    die "could not make $venv"
}
requirements=
for file in "$@"; do requirements="$requirements -r $file"; done
# shellcheck disable=SC2086  # file names of this repository, without blanks
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $requirements >>"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    die "pip could not install $*; is a package index reachable?"
}
printf '%s' "$key" >"$venv/.key"
