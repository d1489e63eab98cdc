"""Answers questions for as long as there are any: y = intercept + slope x + noise of sd 0.3."""

import csv
import json
import math
import sys
import time

time.sleep(1)  # what a large library or a table of physics takes to load: once per worker, not once per point
with open("line.csv") as file:
    data = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
print("ready", file=sys.stderr)  # standard error is free for remarks, standard output is for answers

SD = 0.3
for line in sys.stdin:
    question = json.loads(line)
    intercept, slope = (question["parameters"][name] for name in ("intercept", "slope"))
    squares = sum((y - intercept - slope * x) ** 2 for x, y in data)
    log_likelihood = -squares / (2 * SD**2) - len(data) * math.log(SD * math.sqrt(2 * math.pi))
    print(json.dumps({"id": question["id"], "log_likelihood": log_likelihood}), flush=True)
