#!/bin/sh
# Builds the library and installs it with its header and pkg-config file: `./install.sh /usr/local`.
set -eu
prefix=${1:?usage: install.sh PREFIX}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
"$root/tools/with-rust" cargo build --quiet --release --locked --manifest-path "$root/Cargo.toml" -p sojourn-path-c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
built=${CARGO_TARGET_DIR:-$root/target}/release
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
cp "$here/include/sojournpath.h" "$prefix/include/"
cp "$built/libsojournpath.a" "$prefix/lib/"
for shared in "$built"/libsojournpath.so "$built"/libsojournpath.dylib; do
    if [ -e "$shared" ]; then cp "$shared" "$prefix/lib/"; fi
done
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" "$here/sojournpath.pc.in" >"$prefix/lib/pkgconfig/sojournpath.pc"
