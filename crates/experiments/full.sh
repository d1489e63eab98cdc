#!/usr/bin/env bash
# Makes everything that is committed of the experiments: all runs (in ./results, or the directory given; finished ones are kept and
# not made again), then the figures and the tables of RESULTS.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-results}
cargo run --release -p experiments -- all --out "$out"
cargo run --release -p experiments -- publish --out "$out"
