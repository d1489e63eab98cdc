#!/bin/sh
#SBATCH --time=00:10:00
#SBATCH --output=/dev/null
#SBATCH --requeue
# One task evaluates one line of the questions in the folder that it is given, and leaves one file in queue/answers.
folder=$1
question=$(sed -n "${SLURM_ARRAY_TASK_ID}p" "$folder/questions.jsonl")
id=$(printf '%s' "$question" | sed 's/.*"id": *\([0-9]*\).*/\1/')
# A task that is started again after its node was lost may have been done before.
if [ -e "queue/answers/$id.json" ] || [ -e "queue/told/$id.json" ]; then exit 0; fi
partial=$folder/$id.${SLURM_JOB_ID:-0}
printf '%s\n' "$question" | python3 likelihood.py > "$partial" 2> "$folder/$id.err"
status=$?
# Who is killed says nothing about the likelihood: without an answer the task is submitted again.
if [ "$status" -gt 128 ]; then exit "$status"; fi
if [ "$status" -ne 0 ]; then
    printf '{"id":%s,"failed":"see %s"}\n' "$id" "$folder/$id.err" > "$partial"
fi
# Renamed when it is whole: a task that is killed at its time limit leaves no half answer.
mv "$partial" "queue/answers/$id.json"
