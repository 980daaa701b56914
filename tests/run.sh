#!/usr/bin/env bash
# What `make test` runs, cheapest first.

STAGE_LOGS=.work/logs
. tests/tools/stages.sh

stage setup 900 make --no-print-directory setup-test
for name in lint types unit corpus integration; do
    stage "$name" 300 make --no-print-directory "$name"
done
