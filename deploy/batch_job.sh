#!/usr/bin/env bash
# One step per task of a scheduler such as Airflow, cron or Kubernetes:
#
#   batch_job.sh train      train a candidate, with held-out figures as JSON
#   batch_job.sh check      score rows with labels by the candidate, and audit them: status 2 if a limit is exceeded
#   batch_job.sh publish    make the candidate the model that is served; running servers take it over
#   batch_job.sh score      score new rows: status 2 if too many of them cannot be scored
#   batch_job.sh audit      audit what was scored: status 2 if a limit is exceeded
#
# Each step replaces what it writes, so a task may be repeated. Status 0 is success, 1 a failure that is explained on
# standard error, 2 a limit that is exceeded, 64 wrong usage. Airflow's BashOperator takes every status but 0 for a
# failure, so a check that fails keeps the steps after it from running.
set -euo pipefail

work=${WORK:-.}              # folder of the tables and of the results
models=${MODELS:-$work}      # folder of model.ft, which servers read
training=${TRAINING:-$work/training.csv}
checking=${CHECKING:-$work/checking.csv}
rows=${ROWS:-$work/rows.csv}
label=${LABEL:?column with the labels}
sensitive=${SENSITIVE:?columns that define the groups, separated by commas}
limit=${LIMIT:-.1}           # largest strong pairwise demographic disparity
rejected=${MAX_REJECTED:-.01}

case "${1:-}" in
train)
    fairtransport train "$training" --label "$label" --sensitive "$sensitive" --method "${METHOD:-cot}" \
        --out "$work/candidate.ft" --json "$work/training.json" --force
    ;;
check)
    fairtransport score "$work/candidate.ft" "$checking" --max-rejected "$rejected" --out "$work/checked.csv" --force
    fairtransport audit "$work/checked.csv" --score score --label "$label" --sensitive "$sensitive" \
        --fail-above "mean=$limit" --surely --json "$work/checked.json" --html "$work/checked.html" --force
    ;;
publish)
    cp "$work/candidate.ft" "$models/.model.ft.new"
    mv "$models/.model.ft.new" "$models/model.ft" # renaming is atomic: no reader sees half a file
    ;;
score)
    fairtransport score "$models/model.ft" "$rows" --max-rejected "$rejected" --out "$work/scored.csv" --force
    ;;
audit)
    fairtransport audit "$work/scored.csv" --score score --sensitive "$sensitive" \
        --fail-above "mean=$limit" --surely --json "$work/scored.json" --force
    ;;
*)
    echo "usage: batch_job.sh train|check|publish|score|audit" >&2
    exit 64
    ;;
esac
