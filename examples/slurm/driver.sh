#!/bin/sh
# Rounds of ask, sbatch and tell until the budget is used up. May be stopped at any time and started again.
set -eu
cd "$(dirname "$0")"
batchquad=${BATCHQUAD:-batchquad}
store=${STORE:-problem.batchquad}

[ -d "$store" ] || "$batchquad" new problem.toml --store "$store"
while :; do
    # What was asked and never answered comes first: tasks that ran out of time, or a driver that was stopped.
    "$batchquad" ask "$store" --pending > questions.jsonl
    [ -s questions.jsonl ] || "$batchquad" ask "$store" > questions.jsonl
    n=$(wc -l < questions.jsonl)
    [ "$n" -gt 0 ] || break
    rm -rf answers
    mkdir answers
    sbatch --wait --array="1-$((n))" array.sh || echo "some tasks failed" >&2
    if ! cat answers/*.json > answers.jsonl; then
        echo "no task left an answer: look at the job's log, then start this script again" >&2
        exit 1
    fi
    "$batchquad" tell "$store" answers.jsonl
done
"$batchquad" result "$store"
