#!/bin/sh
# Poisson counts with one rate up to day 6 and another from day 7 on.
# The question arrives as one line: {"id":0,"parameters":{"before":4.1,"after":2.3},"seed":7}
read -r question
value() { printf '%s' "$question" | sed "s/.*\"$1\":\([^,}]*\).*/\1/"; }

awk -v before="$(value before)" -v after="$(value after)" '
    /^#/ { next }
    {
        rate = $1 <= 6 ? before : after
        sum += $2 * log(rate) - rate
        for (k = 2; k <= $2; k++) sum -= log(k)
    }
    END { printf "%.17g\n", sum }
' counts.txt
