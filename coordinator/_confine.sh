# Run a shell command so that what other agents hold is read-only for it, and nothing else differs.
#
#     sh _confine.sh TABLE COMMAND
#
# TABLE lists bind mounts (fstab's form), made by the daemon for this one command. They exist in a
# private mount namespace, which ends with the command. Where that cannot be had, the command does
# not run: 126, and a sentence. It keeps honest commands out; it is no prison for hostile ones.
shell=${BASH:-$(command -v bash || echo sh)}
exec unshare --user --map-current-user --mount --keep-caps sh -c '
if ! mount -a -T "$1" 2>/dev/null; then
    echo "coord: the files that other agents hold could not be protected, so this command was not run. Repeat it." >&2
    exit 126
fi
exec "$3" -c "$2"' coord "$1" "$2" "$shell"
