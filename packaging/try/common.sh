# Parts of the scripts that try packages in a root of their own. They source this file.
set -euo pipefail

# Network, mounts and processes of its own: port 80 is free, and nothing outlives the script.
if [ "${PLIMSOLL_TRY_INSIDE:-}" != yes ]; then
  export PLIMSOLL_TRY_INSIDE=yes
  [ "$(id -u)" -eq 0 ] && as_root=() || as_root=(sudo --preserve-env)
  exec "${as_root[@]}" unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$@"
fi
ip link set lo up

try="${0##*/}"
folder="$(mktemp -d)"
root="$folder/root"
server=

end() {
  local code=$?
  [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
  [ $code -eq 0 ] || { echo "packaging/try/$try: failed" >&2; tail -n 20 "$folder/log" >&2 || true; }
  umount --recursive --lazy "$root" 2>/dev/null || true
  rm -rf --one-file-system "$folder"
}
trap end EXIT

ok() { echo "ok: $*"; }
fail() { echo "packaging/try/$try: $*" >&2; exit 1; }
# Begins a command in the root. No function: its process must become the command's.
in_root=(chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8)

# Makes a root of Debian 12 from a tarball, which is made once.
debian_root() {
  local base="${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll-try/bookworm-2.tar"
  if [ ! -e "$base" ]; then
    mkdir -p "${base%/*}"
    fail "there is no $base: packaging/try/base makes it"
  fi
  mkdir "$root"
  tar -C "$root" -xf "$base"
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mkdir "$root/given"
}

# Reads a setting of the installed unit.
of_unit() { sed -n "s/^$1=//p" "$unit"; }

# Starts the server as the unit does: its command, as its user, with its one privilege.
start() {
  local user group privilege
  user="$(of_unit User)" group="$(of_unit Group)" privilege="$(of_unit AmbientCapabilities | tr '[:upper:]' '[:lower:]')"
  [ "$(of_unit CapabilityBoundingSet)" = "$(of_unit AmbientCapabilities)" ] || fail "the unit has more privileges than it uses"
  privilege="-all,+${privilege#cap_}"
  "${in_root[@]}" setpriv --reuid "$user" --regid "$group" --init-groups --no-new-privs \
    --inh-caps "$privilege" --ambient-caps "$privilege" --bounding-set "$privilege" \
    sh -c "cd $(of_unit WorkingDirectory) && umask $(of_unit UMask) && ulimit -c $(of_unit LimitCORE) && exec $(of_unit ExecStart)" >>"$folder/log" 2>&1 &
  server=$!
  answers
}

# Waits until the server answers.
answers() {
  local tries
  for tries in $(seq 200); do
    if curl --silent --fail --output /dev/null "$url/readyz"; then return; fi
    kill -0 "$server" 2>/dev/null || fail "the server has ended"
    sleep 0.1
  done
  fail "the server does not answer at $url after $tries tries"
}

stop() {
  kill -TERM "$server"
  wait "$server" || fail "the server ended with an error"
  server=
}

url=http://127.0.0.1:8080
password='hold the line'
client=(curl --silent --show-error --fail --noproxy '*')
as_alice=("${client[@]}" --user "alice:$password")

# Adds alice by the operator's command, and uploads and downloads a file.
first_upload() {
  (umask 077 && printf '%s' "$password" >"$root/given/password")
  "${in_root[@]}" plimsoll account add alice --data /var/lib/plimsoll/plimsoll-data --password-file /given/password
  echo 'Hello, sea.' | "${as_alice[@]}" -T - "$url/files/hello.txt"
  [ "$("${as_alice[@]}" "$url/files/hello.txt")" = 'Hello, sea.' ] || fail "the upload came back changed"
}
