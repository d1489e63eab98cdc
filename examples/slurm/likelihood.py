"""Deaths are binomial with probability 1 / (1 + exp(-(a + b log dose))). Question on standard input, answer on output."""

import csv
import json
import math
import sys

question = json.load(sys.stdin)
a, b = question["parameters"]["a"], question["parameters"]["b"]


def log_sigmoid(z):
    return min(z, 0) - math.log1p(math.exp(-abs(z)))


log_likelihood = 0.0
with open("bioassay.csv") as groups:
    for group in csv.DictReader(groups):
        z = a + b * float(group["log_dose"])
        animals, deaths = int(group["animals"]), int(group["deaths"])
        log_likelihood += math.log(math.comb(animals, deaths))
        log_likelihood += deaths * log_sigmoid(z) + (animals - deaths) * log_sigmoid(-z)

# With the id: answers come back in any order, and some may come twice.
print(json.dumps({"id": question["id"], "log_likelihood": log_likelihood}))
