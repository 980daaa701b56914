#!/usr/bin/env bash
# What `make test` runs, cheapest first, inside the environment that the Makefile has set up.

STAGE_LOGS=.work/logs
. tests/tools/stages.sh

for name in lint types unit corpus integration; do
    stage "$name" 300 make --no-print-directory "$name"
done
