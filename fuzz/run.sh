#!/usr/bin/env bash
# Fuzzes each family of disciplines, paths and their C ABI for SECONDS (default 60): fuzz/run.sh [SECONDS [FAMILY …]].
# Needs cargo-fuzz and a nightly compiler.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-60}
shift || true
families=("$@")
[ ${#families[@]} -gt 0 ] || families=(fifo red pie codel fq cake dualpi2 path path_c)
for family in "${families[@]}"; do
    echo "== $family, $seconds s"
    cargo +nightly fuzz run -O --debug-assertions "$family" -- \
        -max_total_time="$seconds" -max_len=4096 -len_control=0 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1
done
