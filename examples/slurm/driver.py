#!/usr/bin/env python3
"""Keeps a Slurm queue filled with evaluations until the run is over. May be stopped at any time and started again.

    ./driver.py

WIDTH (16) is how many evaluations are in the queue, POLL (10) how many seconds pass between two looks at it, TRIES (3) how often an
evaluation is submitted whose task ends without an answer. STORE and BATCHQUAD say where the store and the program are.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import time
import uuid

WIDTH = int(os.environ.get("WIDTH", "16"))
POLL = float(os.environ.get("POLL", "10"))
TRIES = int(os.environ.get("TRIES", "3"))
STORE = os.environ.get("STORE", "problem.batchquad")
BATCHQUAD = os.environ.get("BATCHQUAD", "batchquad")

# What is on its way: a folder for each array, and the answers before and after they were told.
ARRAYS, ANSWERS, TOLD = (pathlib.Path("queue") / name for name in ("arrays", "answers", "told"))


def output(*command, **keywords):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True, **keywords).stdout


def ask(*options):
    return [json.loads(line) for line in output(BATCHQUAD, "ask", STORE, *options).splitlines()]


def tell(answers):
    """Tells answers, lines of JSON; those that are known already change nothing."""
    if answers:
        subprocess.run([BATCHQUAD, "tell", STORE], check=True, input="".join(answers), universal_newlines=True)


def tell_answers():
    """Tells what tasks have left, then puts it aside: who is stopped in between tells it again."""
    files = sorted(ANSWERS.glob("*.json"))
    tell([file.read_text() for file in files])
    for file in files:
        file.rename(TOLD / file.name)


def name():
    """What the jobs of this folder are called; nobody else's are."""
    file = ARRAYS / "name"
    if not file.exists():
        file.write_text("evidence-" + uuid.uuid4().hex[:8])
    return file.read_text()


def questions(array):
    return [json.loads(line) for line in (ARRAYS / array / "questions.jsonl").read_text().splitlines()]


def in_queue():
    """The evaluations whose tasks wait or run, as Slurm knows them."""
    found = set()
    for line in output("squeue", "--noheader", "--array", "--me", "--states=all", "--format=%j %K %T").splitlines():
        job, task, state = line.split()
        if job.startswith(name() + "-") and state in WAITING:
            found.add(questions(job.rsplit("-", 1)[1])[int(task) - 1]["id"])
    return found


WAITING = "PENDING CONFIGURING RUNNING COMPLETING SUSPENDED REQUEUED REQUEUE_HOLD REQUEUE_FED RESIZING SIGNALING STAGE_OUT STOPPED".split()


def submit(jobs):
    """One array for all of them. What it is to do is on the disk first, so that nobody who is stopped here submits it twice."""
    array = str(1 + max((int(folder.name) for folder in ARRAYS.glob("[0-9]*")), default=0))
    folder = ARRAYS / array
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    output("sbatch", f"--array=1-{len(jobs)}", f"--job-name={name()}-{array}", "array.sh", str(folder))


def tries():
    """How often each evaluation was submitted."""
    arrays = [folder.name for folder in ARRAYS.glob("[0-9]*")]
    return collections.Counter(job["id"] for array in arrays for job in questions(array))


PATIENCE = 60  # polls in a row that Slurm may leave without an answer


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    for folder in (ARRAYS, ANSWERS, TOLD):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.path.isdir(STORE):
        output(BATCHQUAD, "new", "problem.toml", "--store", STORE)
    missing, over, silent = set(), False, 0
    while True:
        # In this order: a task that has left the queue has left its answer before.
        try:
            queued = in_queue()
        except subprocess.CalledProcessError:
            # A busy controller answers late: what is in the queue goes on meanwhile.
            silent += 1
            if silent > PATIENCE:
                raise
            time.sleep(POLL)
            continue
        silent = 0
        tell_answers()
        pending = {job["id"]: job for job in ask("--pending")}
        # Twice in a row, because a file may be seen late on another machine.
        gone, missing = missing & (pending.keys() - queued), pending.keys() - queued
        submitted = tries()
        gone |= {id for id in missing if submitted[id] == 0}
        hopeless = {id for id in gone if submitted[id] >= TRIES}
        reason = f"its task ended {TRIES} times without an answer"
        tell([json.dumps({"id": id, "failed": reason}) + "\n" for id in sorted(hopeless)])
        again = [pending[id] for id in sorted(gone - hopeless)]
        room = WIDTH - len(pending.keys() - hopeless)
        new = ask("-n", str(room)) if room > 0 and not over else []
        over = over or len(new) < room
        if again or new:
            submit(again + new)
            missing -= {job["id"] for job in again}
        elif not pending.keys() - hopeless:
            break
        time.sleep(POLL)
    print(output(BATCHQUAD, "result", STORE), end="")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))} ended with {error.returncode}")
    except KeyboardInterrupt:
        sys.exit("stopped; what is in the queue goes on, and so does this script when it is started again")
