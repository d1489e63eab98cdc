#!/bin/sh
#SBATCH --job-name=evidence
#SBATCH --time=00:10:00
#SBATCH --output=/dev/null
# One task evaluates one line of questions.jsonl and leaves one file in answers/.
task=$SLURM_ARRAY_TASK_ID
question=$(sed -n "${task}p" questions.jsonl)
partial=answers/$task.partial
if ! printf '%s\n' "$question" | python3 likelihood.py > "$partial" 2> "answers/$task.err"; then
    id=$(printf '%s' "$question" | sed 's/.*"id":\([0-9]*\).*/\1/')
    printf '{"id":%s,"failed":"see answers/%s.err"}\n' "$id" "$task" > "$partial"
fi
# Renamed when it is whole: a task that is killed at its time limit leaves no half answer.
mv "$partial" "answers/$task.json"
