# shellcheck shell=bash
# Named stages with a time-out each and a table of their times at the end. For tests/run.sh and .ci/run.
#
#   stage NAME SECONDS CMD...        runs CMD; the first stage that fails ends the run
#   background NAME SECONDS CMD...   starts CMD now, for a later
#   await NAME                       which waits for it, shows what it printed, and fails as a stage does
#
# A stage is a program, not a shell function: it runs under timeout(1), without standard input.
# Its output is shown and kept in $STAGE_LOGS/NAME.log. What failed is the last thing above the table.

set -euo pipefail

STAGE_LOGS=${STAGE_LOGS:-$(mktemp -d)}
mkdir -p "$STAGE_LOGS"

_stage_rows=()
_stage_pid=
declare -A _job_pid=() _job_start=() _job_limit=()

stage() {
    local name=$1 limit=$2 start=$SECONDS status=0 log tail_pid
    shift 2
    log=$STAGE_LOGS/$name.log
    printf '\n== %s\n' "$name"
    : >"$log"
    timeout --kill-after=10 "$limit" "$@" </dev/null >>"$log" 2>&1 &
    _stage_pid=$!
    # not a pipe into tee: a service that CMD leaves behind would keep it open
    tail --lines=+1 --follow --sleep-interval=0.2 --pid="$_stage_pid" "$log" &
    tail_pid=$!
    wait "$_stage_pid" || status=$?
    wait "$tail_pid" || true
    _stage_pid=
    _stage_end "$name" "$status" "$start" "$limit"
}

background() {
    local name=$1 limit=$2
    shift 2
    _job_start[$name]=$SECONDS
    _job_limit[$name]=$limit
    timeout --kill-after=10 "$limit" "$@" </dev/null >"$STAGE_LOGS/$name.log" 2>&1 &
    _job_pid[$name]=$!
}

await() {
    local name=$1 status=0
    printf '\n== %s (in the background since second %d)\n' "$name" "${_job_start[$name]}"
    wait "${_job_pid[$name]}" || status=$?
    unset "_job_pid[$name]"
    cat "$STAGE_LOGS/$name.log"
    _stage_end "$name" "$status" "${_job_start[$name]}" "${_job_limit[$name]}" " (from its start to here, in the background)"
}

_stage_end() {
    local name=$1 status=$2 seconds=$((SECONDS - $3)) result=ok
    case $status in
        0) ;;
        124 | 137) result="FAILED: over its time-out ($4 s)" ;;
        *) result="FAILED: exit code $status" ;;
    esac
    _stage_rows+=("$(printf '%-24s %6d s  %s' "$name" "$seconds" "$result${5:-}")")
    [ "$status" -eq 0 ] || exit 1
}

_stages_end() {
    local status=$? pid
    trap - EXIT INT TERM
    # timeout(1) passes the signal on to what it runs
    for pid in $_stage_pid "${_job_pid[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    printf '\n== stages\n'
    printf '%s\n' "${_stage_rows[@]}" "$(printf '%-24s %6d s' total "$SECONDS")"
    exit "$status"
}

trap _stages_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
