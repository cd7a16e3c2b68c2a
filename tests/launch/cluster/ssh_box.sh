#!/bin/sh
# Hosts for tests of ssh: network namespaces with an sshd each. Nothing gets an address outside of
# them. Needs root.
#   ssh_box.sh up FOLDER PREFIX HOST...   makes them and FOLDER/bin/ssh, which reaches them
#   ssh_box.sh down FOLDER PREFIX HOST... removes them
what=$1 folder=$2 prefix=$3
shift 3

make_host() { # NAME NUMBER
  ip netns add "$prefix-$1"
  ip link add "h$2" netns "$prefix-head" type veth peer name "h$2" netns "$prefix-$1"
  ip -n "$prefix-head" addr add "198.18.$2.1/24" dev "h$2"
  ip -n "$prefix-$1" addr add "198.18.$2.2/24" dev "h$2"
  ip -n "$prefix-head" link set "h$2" up
  ip -n "$prefix-$1" link set "h$2" up
  ip -n "$prefix-$1" link set lo up
  ip -n "$prefix-$1" route add default via "198.18.$2.1"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/host_$1"
  cat >"$folder/sshd_$1" <<END
ListenAddress 198.18.$2.2:22
HostKey $folder/host_$1
PidFile $folder/sshd_$1.pid
AuthorizedKeysFile $folder/key.pub
PasswordAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
END
  # sshd insists on /run/sshd; its mount namespace has a separate /run.
  ip netns exec "$prefix-$1" sh -c \
    'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec /usr/sbin/sshd -f "$1" -E "$1.log"' \
    sh "$folder/sshd_$1"
  echo "198.18.$2.2 $(cut -d' ' -f1,2 "$folder/host_$1.pub")" >>"$folder/known_hosts"
  printf 'Host %s\n  HostName 198.18.%s.2\n' "$1" "$2" >>"$folder/ssh_config"
}

up() {
  set -e
  mkdir -p "$folder/bin"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
  ip netns add "$prefix-head"
  ip -n "$prefix-head" link set lo up
  number=0
  for host in "$@"; do
    number=$((number + 1))
    make_host "$host" "$number"
  done
  cat >>"$folder/ssh_config" <<END
Host *
  User root
  IdentityFile $folder/key
  UserKnownHostsFile $folder/known_hosts
  StrictHostKeyChecking yes
END
  cat >"$folder/bin/ssh" <<END
#!/bin/sh
exec ip netns exec $prefix-head $(command -v ssh) -F '$folder/ssh_config' "\$@"
END
  chmod +x "$folder/bin/ssh"
}

down() {
  for host in "$@"; do
    [ -f "$folder/sshd_$host.pid" ] && kill "$(cat "$folder/sshd_$host.pid")"
    ip netns del "$prefix-$host"
  done
  ip netns del "$prefix-head"
  return 0
}

"$what" "$@"
