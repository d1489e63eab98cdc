"""At least one O-ring incident with probability 1 / (1 + exp(-(a + b t))), t = (°F - 70) / 10."""

import csv
import json
import math
import sys

question = json.load(sys.stdin)
a, b = question["parameters"]["a"], question["parameters"]["b"]

log_likelihood = 0.0
with open("orings.csv") as flights:
    for flight in csv.DictReader(flights):
        z = a + b * (float(flight["Temperature"]) - 70) / 10
        if int(flight["Total"]) == 0:
            z = -z
        # log(1 / (1 + exp(-z))), without overflow on either side
        log_likelihood += min(z, 0) - math.log1p(math.exp(-abs(z)))

print(log_likelihood)
