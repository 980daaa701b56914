#!/usr/bin/env bash
# What `make test` runs, cheapest first.

STAGE_LOGS=.work/logs
. tests/tools/stages.sh

for name in setup-test lint types unit corpus integration; do
    stage "$name" 300 make --no-print-directory "$name"
done
