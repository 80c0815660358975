#!/bin/sh
# Make a virtual environment where the distribution's Python came without `venv` (Debian splits it
# off): install the package that has it when we may, otherwise say which one it is.
set -eu
python=$1; target=$2
rm -rf "$target"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "coord: installing python$version-venv"
    apt-get update -qq && apt-get install -y -qq "python$version-venv" >/dev/null
    exec "$python" -m venv "$target"
fi
echo "coord: this Python has no venv; install it: sudo apt-get install python$version-venv" >&2
exit 1
